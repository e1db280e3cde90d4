import { Type } from '@sinclair/typebox'
import { listAuditEntries } from '../../db/audit/audit.ts'
import { isUuid } from '../../db/driver/postgres.ts'
import { auditActions, ListAudit } from '../../schema/audit/audit.ts'
import { decodeCursor, encodeCursor } from '../../schema/http/cursor.ts'
import { createParser } from '../../schema/http/validator.ts'
import type { Command } from './command.ts'
import { formatTable } from './table.ts'
import { findUser, nameUsers } from './users/shown.ts'
import { withDatabase } from './with-database.ts'

const parse = createParser(Type.Omit(ListAudit, ['user']))

export default {
  details: '  --user <id or email>  only entries about the account of a user. Entries remain when the user is deleted: use the id\n' +
    `  --action <action>     only entries of this action, such as ${auditActions[1]}\n` +
    '  --limit <number>      at most so many, from 1 to 1000, by default 100\n' +
    '  --after <cursor>      the next page, with the cursor that the previous one ends with',
  json: '{ entries: [{ id, action, at, actorId, userId, sessionId, keyId, address, userAgent }], next: cursor or null }',
  options: {
    user: { type: 'string' }, action: { type: 'string' }, limit: { type: 'string' }, after: { type: 'string' },
  },

  async run ({ user, action: wanted, limit: limitText = '100', after: cursor }, _, shell) {
    const { action, limit, after } = parse({ action: wanted, limit: Number(limitText), after: cursor })
    return withDatabase(shell, async ({ db }) => {
      const userId = user === undefined || isUuid(String(user))
        ? user as string | undefined
        : (await findUser(db, String(user))).id
      const { rows, next } = await listAuditEntries(
        db, { userId, action, limit, after: after === undefined ? undefined : decodeCursor(after) }
      )
      const last = next && encodeCursor(next)
      const name = await nameUsers(db, rows.flatMap(({ userId, actorId }) => [userId, actorId]))
      const cells = rows.map(({ at, action, userId, actorId, address, userAgent }) =>
        [at, action, name(userId), name(actorId), address, userAgent])
      const table = formatTable(['AT', 'ACTION', 'USER', 'ACTOR', 'ADDRESS', 'USER AGENT'], cells)
      return {
        text: last === null ? table : `${table}\n\nThere are more: add --after ${last}`,
        json: { entries: rows, next: last },
      }
    })
  },
} satisfies Command
