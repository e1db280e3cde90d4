import { listFailedDeliveries } from '../../../db/outbox/failures.ts'
import { countWaiting } from '../../../db/outbox/waiting.ts'
import type { Command } from '../command.ts'
import { formatTable } from '../table.ts'
import { withDatabase } from '../with-database.ts'

const EVENTS = 1000

export default {
  details: `Lists the events that were given up after three days of attempts, oldest first, at most ${EVENTS} at once. Below, it counts the\n` +
    'events and mails that wait for their delivery or another attempt, by their consumer. Mails are sent as long as their links work,\n' +
    'and are not listed after that: their failures are in the log of the nodes.\n\n' +
    '  --after <id>  only the failed events after this one',
  json: '{ failed: [{ id, consumer, type, subject, data, timestamp, attempts, error, failedAt }],\n' +
    '    waiting: [{ consumer, count, retrying, oldest, nextAttempt }] }',
  options: { after: { type: 'string' } },

  run: ({ after }, _, shell) => withDatabase(shell, async ({ db }) => {
    const [failed, waiting] = await Promise.all([
      listFailedDeliveries(db, { limit: EVENTS, after: after as string | undefined }), countWaiting(db),
    ])
    const lost = failed.map(({ id, consumer, type, subject, attempts, failedAt, error }) =>
      [id, consumer, type, subject, attempts, failedAt, error])
    const queues = waiting.map(
      ({ consumer, count, retrying, oldest, nextAttempt }) => [consumer, count, retrying, oldest, nextAttempt]
    )
    const text = [
      failed.length === 0
        ? 'No event has failed.'
        : formatTable(['ID', 'CONSUMER', 'EVENT', 'SUBJECT', 'ATTEMPTS', 'FAILED', 'ERROR'], lost),
      waiting.length === 0
        ? 'Nothing is waiting.'
        : formatTable(['WAITING FOR', 'COUNT', 'FAILED BEFORE', 'OLDEST', 'NEXT ATTEMPT'], queues),
    ].join('\n\n')
    return { text, json: { failed, waiting } }
  }),
} satisfies Command
