import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import type { UploadRow } from '../../db/uploads/uploads.ts'
import { decodeCursor, encodeCursor } from '../../schema/http/cursor.ts'
import { pageQuery } from '../../schema/http/params.ts'
import { baseUrlOf } from '../../schema/options/public-url.ts'
import { line } from '../../schema/text/text.ts'
import type { UploadOperations, UsherUpload } from '../../schema/options/usher.ts'
import { createParser } from '../../schema/http/validator.ts'
import { idOf, type Perform } from './perform.ts'

const parseQuery = createParser(Type.Object({ user: Type.Optional(line()), ...pageQuery('Uploads') }))

/** Creates the operations on uploads. */
export function createUploadOperations (app: FastifyInstance, perform: Perform): UploadOperations {
  const { usherUploads: uploads, usherOptions } = app
  const base = `${baseUrlOf(usherOptions)}/api/uploads`

  const show = ({ id, userId, filename, mediaType, size, sha256, description, createdAt }: UploadRow): UsherUpload => ({
    id,
    fileUrl: `${base}/${id}`,
    userId: userId!,
    filename,
    mediaType,
    size: Number(size),
    sha256,
    description,
    createdAt: new Date(createdAt),
  })

  return {
    get: (id, options) => perform.read(options, async (caller) => show(await uploads.get(caller, idOf(id)))),

    list: (query = {}, options) => perform.read(options, async (caller) => {
      const { user, limit, after } = parseQuery(query)
      const userId = user?.toLowerCase()
      caller.authorize('uploads:read', userId)
      const { rows, next } = await uploads.list({ userId, limit, after: after && decodeCursor(after) })
      return { data: rows.map(show), page: { next: next && encodeCursor(next), limit } }
    }),

    delete: (id, options) => perform.write(options, (caller) => uploads.delete(caller, idOf(id))),
  }
}
