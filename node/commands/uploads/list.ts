import { Type } from '@sinclair/typebox'
import { listUploads, listUploadsOfUsers, userUploadsKey } from '../../../db/uploads/uploads.ts'
import { decodeCursor, encodeCursor } from '../../../schema/http/cursor.ts'
import { pageQuery } from '../../../schema/http/params.ts'
import { createParser } from '../../../schema/http/validator.ts'
import type { Command } from '../command.ts'
import { formatTable } from '../table.ts'
import { findUser, nameUsers } from '../users/shown.ts'
import { withDatabase } from '../with-database.ts'
import { showingUploads, UPLOAD } from './shown.ts'

const parse = createParser(Type.Object(pageQuery('Uploads')))

export default {
  details: '  --user <id or email>  only those of a user\n' +
    '  --limit <number>      at most so many, from 1 to 1000, by default 100\n' +
    '  --after <cursor>      the next page, with the cursor that the previous one ends with',
  json: `{ uploads: [${UPLOAD}], next: cursor or null }`,
  options: { user: { type: 'string' }, limit: { type: 'string' }, after: { type: 'string' } },

  async run ({ user: given, limit: limitText = '100', after: cursor }, _, shell) {
    const { limit, after } = parse({ limit: Number(limitText), after: cursor })
    return withDatabase(shell, async ({ db, options }) => {
      const user = given === undefined ? undefined : await findUser(db, String(given))
      const query = { limit, after: after === undefined ? undefined : decodeCursor(after), onlyPublic: false }
      const [page] = user
        ? await listUploadsOfUsers(db, [userUploadsKey(user.id, query)])
        : [await listUploads(db, query)]
      const { rows, next } = page!
      const last = next && encodeCursor(next)
      const uploads = rows.map(showingUploads({ options }))
      const name = await nameUsers(db, uploads.map(({ userId }) => userId))
      const cells = uploads.map(({ id, userId, filename, size, visibility, createdAt }) =>
        [id, name(userId), filename, size, visibility, createdAt])
      const table = formatTable(['ID', 'USER', 'FILENAME', 'BYTES', 'VISIBILITY', 'CREATED'], cells)
      return {
        text: last === null ? table : `${table}\n\nThere are more: add --after ${last}`, json: { uploads, next: last },
      }
    })
  },
} satisfies Command
