import { run } from '../run.ts'
import type { Command } from './command.ts'

export default {
  summary: 'Run the node.',
  details: 'Until SIGTERM or SIGINT. It brings the database up to date first.',
  options: {},
  run,
} satisfies Command
