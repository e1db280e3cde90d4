import { checkAll } from '../status/checks.ts'
import type { Command } from './command.ts'
import { formatTable } from './table.ts'

export default {
  details:
    'Checks the settings, the database and its tables, the signing keys, the clock, the nodes, the deliveries,\n' +
      'the notifications, backups, the disk, the storage of uploads and the mail server.\n' +
      'The exit code is 0 if nothing has failed, otherwise 1, for example without a connected node.\n' +
      'A warning is no failure. An embedded PostgreSQL is not started: if it does\n' +
      'not run, no node runs, and the database has failed.',
  json: '{ healthy: boolean, checks: [{ name, state: ok, warning, failed or skipped, detail }] }',
  options: {},

  async run (_, __, shell) {
    const checks = await checkAll(shell)
    const healthy = checks.every(({ state }) => state !== 'failed')
    const text =
      `${formatTable(['CHECK', 'STATE', 'DETAIL'], checks.map(({ name, state, detail }) => [name, state, detail]))}\n\n` +
        (healthy ? 'Nothing has failed.' : 'Something has failed.')
    return { text, json: { healthy, checks }, isFailure: !healthy }
  },
} satisfies Command
