#!/usr/bin/env node
import module from 'node:module'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { hasLoadedConfig } from './config/loaded.ts'
import { requireNode } from '../schema/runtime/require-node.ts'

try {
  // Before anything else is loaded, because older versions of Node do not know all modules and all of the syntax.
  requireNode(process.versions.node)
} catch (error) {
  const [{ message: msg }, isNode] = [error as Error, process.argv[2] === undefined || process.argv[2] === 'start']
  const entry = { level: 60, time: Date.now(), pid: process.pid, hostname: hostname(), msg }
  // What a node writes is a log, see node/terminal/print.ts, which this version of Node may not be able to load.
  process.stderr.write(`${isNode && !process.stderr.isTTY ? JSON.stringify(entry) : msg}\n`)
  process.exit(1)
}

// Node keeps compiled code for the next start, which then takes two thirds of the time. The cache is next to the code:
// a user who may write here could change the code itself. Node's default folder is shared by all users of the machine.
// If the folder is not writable, nothing is kept.
module.enableCompileCache(join(import.meta.dirname, '../node_modules/.cache/usher'))

// A static import would be loaded before the cache is enabled.
const { main } = await import('./commands/index.ts')
const { argv, env, stdout, stderr } = process
const code = await main({
  args: argv.slice(2),
  env,
  cwd: process.cwd(),
  stdout,
  stderr,
  process,
  // Only a command that reads it opens it.
  get stdin () { return process.stdin },
})
// A node ends the process by itself.
if (code !== undefined) {
  process.exitCode = code
  if (code !== 0) process.exit()
  // A configuration file may have opened connections, which would keep the process alive.
  if (hasLoadedConfig()) stdout.write('', () => process.exit())
}
