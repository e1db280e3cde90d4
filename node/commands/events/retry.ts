import { listFailedDeliveries, retryFailedDelivery } from '../../../db/outbox/failures.ts'
import { attemptNow } from '../../../db/outbox/waiting.ts'
import type { Database } from '../../../db/tables/index.ts'
import type { Messages } from '../../terminal/print.ts'
import { showProgress } from '../../terminal/progress.ts'
import { WrongArguments, type Command } from '../command.ts'
import { withDatabase } from '../with-database.ts'

const AT_ONCE = 1000

export default {
  details: 'Exactly one of these options is required. Nodes attempt the events for three days, as new ones.\n\n' +
    '  --id <event>  one event\n' +
    '  --all         all events that were given up, and at once what waits for another attempt, mails included',
  json: '{ retried: number, attempted: number }',
  options: { id: { type: 'string' }, all: { type: 'boolean' } },

  async run ({ id, all }, _, shell) {
    if ((id === undefined) === (all === undefined)) {
      throw new WrongArguments('Exactly one of --id and --all is required.')
    }
    return withDatabase(shell, async ({ db, options }) => {
      if (id !== undefined && !await retryFailedDelivery(db, String(id))) {
        throw new Error(`There is no failed event ${id}.`)
      }
      const retried = all ? await retryAll(db, shell.messages) : 1
      const attempted = all ? await attemptNow(db, options.schema) : 0
      const waiting = all
        ? ` ${attempted} that waited for another attempt ${attempted === 1 ? 'is' : 'are'} attempted now.`
        : ''
      return {
        text: `${retried} failed event${retried === 1 ? ' is' : 's are'} delivered again.${waiting}`,
        json: { retried, attempted },
      }
    })
  },
} satisfies Command

// The events are listed first, so that those that fail again meanwhile are not retried forever. At most 10,000 are
// kept.
async function retryAll (db: Database, messages: Messages): Promise<number> {
  const ids: string[] = []
  for (let page; page === undefined || page.length > 0; ids.push(...page.map(({ id }) => id))) {
    page = await listFailedDeliveries(db, { limit: AT_ONCE, after: ids.at(-1) })
  }
  const progress = showProgress(messages, 'Retrying events')
  let retried = 0
  for (const id of ids) {
    if (await retryFailedDelivery(db, id)) retried++
    progress.update(retried, ids.length)
  }
  progress.end()
  return retried
}
