import { listUploadLinks } from '../../../db/uploads/upload-links.ts'
import type { Command } from '../command.ts'
import { formatRecord } from '../table.ts'
import { withDatabase } from '../with-database.ts'
import { requireUpload, showingUploads, UPLOAD } from './shown.ts'

export default {
  details: 'ID is that of the list: uploads list.',
  arguments: ['ID'],
  json: `{ upload: ${UPLOAD}, links: number }`,
  options: {},

  run: (_, [id = ''], shell) => withDatabase(shell, async ({ db, options }) => {
    const upload = showingUploads({ options })(await requireUpload(db, id))
    const links = (await listUploadLinks(db, upload.id)).length
    return { text: formatRecord({ ...upload, links }), json: { upload, links } }
  }),
} satisfies Command
