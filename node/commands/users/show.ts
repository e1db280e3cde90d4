import { listSessionsOf } from '../../../db/access/sessions.ts'
import { findCredentials } from '../../../db/users/users.ts'
import type { Command } from '../command.ts'
import { formatRecord } from '../table.ts'
import { withDatabase } from '../with-database.ts'
import { findUser, showUser, USER } from './shown.ts'

export default {
  details: 'USER is the id or the email address of the user.',
  arguments: ['USER'],
  json: `{ user: ${USER}, hasPassword, sessions: number }`,
  options: {},

  run: (_, [given = ''], shell) => withDatabase(shell, async ({ db }) => {
    const user = showUser(await findUser(db, given))
    const [credentials, sessions] = await Promise.all([findCredentials(db, user.email), listSessionsOf(db, user.id)])
    const json = { user, hasPassword: credentials?.passwordHash != null, sessions: sessions.length }
    return { text: formatRecord({ ...user, hasPassword: json.hasPassword, sessions: json.sessions }), json }
  }),
} satisfies Command
