import { listUploadLinks } from '../../../db/uploads/upload-links.ts'
import { showLink } from '../../../plugins/uploads/show-upload.ts'
import type { Command } from '../command.ts'
import { formatTable } from '../table.ts'
import { nameUsers } from '../users/shown.ts'
import { withDatabase } from '../with-database.ts'
import { requireUpload } from './shown.ts'

export default {
  details: 'ID is that of the list: uploads list. The addresses of links are stored nowhere, so nothing shows them again.',
  arguments: ['ID'],
  json: '{ links: [{ id, name, createdAt, expiresAt, createdBy, keyId, keyName }] }',
  options: {},

  run: (_, [id = ''], shell) => withDatabase(shell, async ({ db }) => {
    const links = (await listUploadLinks(db, (await requireUpload(db, id)).id)).map(showLink)
    const name = await nameUsers(db, links.map(({ createdBy }) => createdBy))
    const cells = links.map(({ id, name: purpose, createdAt, expiresAt, createdBy }) =>
      [id, purpose, name(createdBy), createdAt, expiresAt])
    return { text: formatTable(['ID', 'NAME', 'CREATED BY', 'CREATED', 'EXPIRES'], cells), json: { links } }
  }),
} satisfies Command
