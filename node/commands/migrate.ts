import type { MigrationStep } from '../../db/migrations/steps.ts'
import type { Messages } from '../terminal/print.ts'
import { showProgress, type Progress } from '../terminal/progress.ts'
import { withDatabase } from './with-database.ts'
import type { Command } from './command.ts'

export default {
  details: 'Creates or changes the tables, while nodes use them. A node does this when it starts. Use this command if nodes may not change\n' +
    'tables. If the database does not answer, it waits for DATABASE_WAIT_SECONDS.',
  json: '{ location }',
  options: {},
  run: (_, __, shell) => withDatabase(
    shell,
    async ({ location }) => ({ text: `The database is up to date: ${location}`, json: { location } }),
    { creates: true, waits: true, report: createReport(shell.messages) }
  ),
} satisfies Command

function createReport (messages: Messages) {
  let building: { index: string, progress: Progress } | undefined
  let waiting = ''

  return function report ({ migration = '', state, index = '', done = 0, total }: MigrationStep): void {
    if (state === 'building' && building?.index !== index) {
      building?.progress.end()
      building = { index, progress: showProgress(messages, `Building the index ${index}`, (blocks) => `${blocks} blocks`) }
    }
    if (state === 'building') return building!.progress.update(done, total)
    building?.progress.end()
    building = undefined
    if (state === 'started') messages.print(`Running the migration ${migration}`)
    // It waits many times for the same lock.
    if (state === 'waiting' && waiting !== migration) {
      messages.print(
        migration ? `${migration} waits for a lock that another transaction has` : 'Another node migrates the database'
      )
    }
    if (state === 'waiting') waiting = migration
  }
}
