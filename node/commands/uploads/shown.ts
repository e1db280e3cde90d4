import { findUploads, type UploadRow } from '../../../db/uploads/uploads.ts'
import type { Database } from '../../../db/tables/index.ts'
import { showUpload } from '../../../plugins/uploads/show-upload.ts'
import { baseUrlOf } from '../../../schema/options/public-url.ts'
import { UploadRecord } from '../../../schema/uploads/upload.ts'
import type { CommandContext } from '../with-database.ts'

/** Returns how commands show uploads to programs: as the API does. */
export function showingUploads ({ options }: Pick<CommandContext, 'options'>) {
  const base = `${baseUrlOf(options)}/api/uploads`
  return (row: UploadRow) => showUpload(row, base)
}

/** Returns the upload with an id. Throws an `Error` with a sentence if there is none. */
export async function requireUpload (db: Database, id: string): Promise<UploadRow> {
  const [upload] = await findUploads(db, [id.toLowerCase()])
  if (!upload) throw new Error(`There is no upload ${id}.`)
  return upload
}

/** The shape of an upload, for `--help`. */
export const UPLOAD = `{ ${Object.keys(UploadRecord.properties).join(', ')} }`
