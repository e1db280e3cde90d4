import { deleteUploadLink, findUploadLink } from '../../../db/uploads/upload-links.ts'
import { terminalContext } from '../audit.ts'
import type { Command } from '../command.ts'
import { withDatabase } from '../with-database.ts'

export default {
  details: 'LINK is the id that the list shows: uploads links.',
  arguments: ['LINK'],
  json: '{ id, uploadId, revoked: boolean }',
  options: {},

  run: (_, [given = ''], shell) => withDatabase(shell, async ({ db }) => {
    const id = given.toLowerCase()
    const link = await findUploadLink(db, id)
    const entry = { ...terminalContext, action: 'upload-link.revoke', userId: link?.ownerId ?? null } as const
    if (!link || !await deleteUploadLink(db, link.uploadId, id, null, entry)) {
      throw new Error(`There is no link ${given}.`)
    }
    return { text: `The link ${id} was revoked.`, json: { id, uploadId: link.uploadId, revoked: true } }
  }),
} satisfies Command
