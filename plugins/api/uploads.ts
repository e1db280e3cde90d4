import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { showLink, showUpload, urlOfLink } from '../uploads/show-upload.ts'
import { decodeCursor, encodeCursor } from '../../schema/http/cursor.ts'
import { pageQuery } from '../../schema/http/params.ts'
import { baseUrlOf } from '../../schema/options/public-url.ts'
import { line } from '../../schema/strings/text.ts'
import type { UploadLinkOperations, UploadOperations } from '../../schema/options/usher.ts'
import { createParser } from '../../schema/http/validator.ts'
import { idOf, type Perform } from './perform.ts'

const parseQuery = createParser(Type.Object({ user: Type.Optional(line()), ...pageQuery('Uploads') }))

/** Creates the operations on uploads. */
export function createUploadOperations (app: FastifyInstance, perform: Perform): UploadOperations {
  const { usherUploads: uploads, usherOptions } = app
  const base = `${baseUrlOf(usherOptions)}/api/uploads`

  return {
    get: (id, options) => perform(options, async (caller) =>
      showUpload(await uploads.get(caller, idOf(id)), base)),

    list: (query = {}, options) => perform(options, async (caller) => {
      const { user, limit, after } = parseQuery(query)
      const { rows, next } = await uploads.list(caller, { user, limit, after: after && decodeCursor(after) })
      return { data: rows.map((row) => showUpload(row, base)), page: { next: next && encodeCursor(next), limit } }
    }),

    update: (id, changes, options) => perform(options, async (caller) =>
      showUpload(await uploads.update(caller, idOf(id), changes), base)),

    links: Object.freeze<UploadLinkOperations>({
      create: (id, given, options) => perform(options, async (caller) => {
        const { secret, ...link } = await uploads.links.create(caller, idOf(id), given)
        return { ...showLink(link), url: urlOfLink(base, idOf(id), secret) }
      }),
      list: (id, options) => perform(options, async (caller) =>
        (await uploads.links.list(caller, idOf(id))).map(showLink)),
      revoke: (id, linkId, options) => perform(options, (caller) =>
        uploads.links.revoke(caller, idOf(id), idOf(linkId))),
    }),

    delete: (id, options) => perform(options, async (caller) => { await uploads.delete(caller, idOf(id)) }),
  }
}
