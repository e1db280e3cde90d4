import { withDatabase } from './with-database.ts'
import type { Command } from './command.ts'

export default {
  summary: 'Bring the database up to date.',
  details: 'Creates or changes the tables. A node does this when it starts. Use this command if nodes may not change tables.',
  options: {},
  run: () => withDatabase(async ({ location }) => console.log(`The database is up to date: ${location}`)),
} satisfies Command
