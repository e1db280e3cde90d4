#!/usr/bin/env node
import module from 'node:module'
import { join } from 'node:path'

// What Node has compiled is kept for the next start, which then takes two thirds of the time. Beside the code, and
// not where Node would put it, in a folder that all users of the machine share: whoever may write here may change
// the code itself. Where nobody may, nothing is kept. Older Nodes are told so by the command.
module.enableCompileCache?.(join(import.meta.dirname, '../node_modules/.cache/usher'))

// A static import would be loaded before that line.
const { main } = await import('./commands/index.ts')
await main(process.argv.slice(2))
