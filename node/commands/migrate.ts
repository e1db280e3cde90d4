import { withDatabase } from './with-database.ts'
import type { Command } from './command.ts'

export default {
  summary: 'Bring the database up to date.',
  details: 'A node does this by itself as it starts; this is for those who want it done before, with more rights than a node has.',
  options: {},
  run: () => withDatabase(async ({ location: place }) => console.log(`Up to date: ${place}`)),
} satisfies Command
