import { insertAuditEntries } from '../../../db/audit/audit.ts'
import { deleteAllSessions, deleteSession, deleteSessionsOf } from '../../../db/access/ended-sessions.ts'
import { isUuid } from '../../../db/driver/postgres.ts'
import type { Database } from '../../../db/tables/index.ts'
import { repairAccount } from '../../../db/sign-in/repairs.ts'
import { findUser } from '../users/shown.ts'
import { terminalContext } from '../audit.ts'
import { withDatabase } from '../with-database.ts'
import { WrongArguments, type Command } from '../command.ts'

export default {
  details: 'One of these options is required:\n\n' +
    '  --user <id or email>  end all sessions of a user, and make all links of mails to the user void\n' +
    '  --id <session>        end one session\n' +
    '  --all                 end all sessions of all users',
  json: '{ ended: number }',
  options: { user: { type: 'string' }, id: { type: 'string' }, all: { type: 'boolean' } },

  async run ({ user, id, all }, _, shell) {
    const chosen = [user, id, all].filter((value) => value !== undefined)
    if (chosen.length !== 1) throw new WrongArguments('Exactly one of --user, --id and --all is required.')
    return withDatabase(shell, async ({ db }) => {
      const count = id ? await end(db, String(id)) : all ? await endAll(db) : await endOf(db, String(user))
      return { text: `${count} session${count === 1 ? '' : 's'} ended.`, json: { ended: count } }
    })
  },
} satisfies Command

async function end (db: Database, id: string): Promise<number> {
  if (!isUuid(id)) return 0
  return (await deleteSession(db, { id }, { ...terminalContext, action: 'session.end' })).length
}

const endAll = (db: Database): Promise<number> => endBy(db, null, deleteAllSessions)

async function endOf (db: Database, user: string): Promise<number> {
  const known = await findUser(db, user)
  const ended = await endBy(db, known.id, async (trx) => (await deleteSessionsOf(trx, known.id, null)).length)
  // This waits for a change of the user that is being made, which the sessions must not.
  return ended + await endBy(db, known.id, async (trx) =>
    (await repairAccount(trx, known.id, 'sessions-end', { actorId: null })).sessions.length)
}

// Ends sessions, and writes that to the account log, in one transaction. Returns their number.
async function endBy (
  db: Database, userId: string | null, deleteSessions: (trx: Database) => Promise<number>
): Promise<number> {
  return db.transaction().execute(async (trx) => {
    const count = await deleteSessions(trx)
    if (count > 0) await insertAuditEntries(trx, [{ ...terminalContext, action: 'session.end', userId }])
    return count
  })
}
