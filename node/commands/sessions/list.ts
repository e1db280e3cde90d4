import { listSessions, listSessionsOf } from '../../../db/access/sessions.ts'
import type { Command } from '../command.ts'
import { formatTable } from '../table.ts'
import { findUser, nameUsers } from '../users/shown.ts'
import { withDatabase } from '../with-database.ts'

const SESSIONS = 1000

export default {
  details: `  --user <id or email>  only those of a user; by default the newest ${SESSIONS} of all users`,
  json: '{ sessions: [{ id, userId, createdAt, lastUsedAt, expiresAt, address, userAgent }] }',
  options: { user: { type: 'string' } },

  run: ({ user: given }, _, shell) => withDatabase(shell, async ({ db }) => {
    const user = given === undefined ? undefined : await findUser(db, String(given))
    const sessions = user
      ? (await listSessionsOf(db, user.id)).map((row) => ({ userId: user.id, ...row }))
      : await listSessions(db, SESSIONS)
    const name = await nameUsers(db, sessions.map(({ userId }) => userId))
    const cells = sessions.map(
      ({ id, userId, lastUsedAt, address, userAgent }) => [id, name(userId), lastUsedAt, address, userAgent]
    )
    return { text: formatTable(['ID', 'USER', 'LAST USED', 'ADDRESS', 'USER AGENT'], cells), json: { sessions } }
  }),
} satisfies Command
