import { run } from '../run.ts'
import type { Command } from './command.ts'

export default {
  summary: 'Run the node.',
  details: 'Brings the database up to date, then runs until SIGTERM or SIGINT.',
  options: {},
  run,
} satisfies Command
