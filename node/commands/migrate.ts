import { withDatabase } from './with-database.ts'
import type { Command } from './command.ts'

export default {
  summary: 'Bring the database up to date.',
  details: 'Creates or changes the tables. A node does this when it starts. Use this command if nodes may not change tables.\n' +
    'If the database does not answer, it waits for DATABASE_WAIT_SECONDS.',
  json: '{ location }',
  options: {},
  run: () => withDatabase(async ({ location }) => ({ text: `The database is up to date: ${location}`, json: { location } }), { waits: true }),
} satisfies Command
