import { listApiKeysOfAll, listApiKeys } from '../../../db/sign-in/api-keys.ts'
import type { Command } from '../command.ts'
import { formatTable } from '../table.ts'
import { findUser, nameUsers } from '../users/shown.ts'
import { withDatabase } from '../with-database.ts'

const KEYS = 1000

export default {
  details: `  --user <id or email>  only those of a user; by default the newest ${KEYS} of all users`,
  json: '{ apiKeys: [{ id, userId, name, actions, createdAt, lastUsedAt, expiresAt }] }',
  options: { user: { type: 'string' } },

  run: ({ user: given }, _, shell) => withDatabase(shell, async ({ db }) => {
    const user = given === undefined ? undefined : await findUser(db, String(given))
    const apiKeys = user
      ? (await listApiKeys(db, user.id)).map((row) => ({ userId: user.id, ...row }))
      : await listApiKeysOfAll(db, KEYS)
    const name = await nameUsers(db, apiKeys.map(({ userId }) => userId))
    const cells = apiKeys.map(
      ({ id, userId, name: purpose, lastUsedAt, expiresAt }) => [id, name(userId), purpose, lastUsedAt, expiresAt]
    )
    return { text: formatTable(['ID', 'USER', 'NAME', 'LAST USED', 'EXPIRES'], cells), json: { apiKeys } }
  }),
} satisfies Command
