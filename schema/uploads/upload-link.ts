import { Type, type Static } from '@sinclair/typebox'
import { defineError } from '../http/errors.ts'
import { Id, Instant, line, nullable } from '../strings/text.ts'

export const TooManyLinks = defineError(
  'TOO_MANY_LINKS', 'There are too many links: revoke one that is not needed any more', 409
)
export const LinkNotFound = defineError('LINK_NOT_FOUND', 'Link not found', 404)

const WEEK = 7 * 24 * 60 * 60

/** The body of POST /api/uploads/{id}/links (contract 13.2). */
export const CreateUploadLink = Type.Object({
  seconds: Type.Integer({ minimum: 1, maximum: WEEK, description: 'How long the link works' }),
  name: Type.Optional(line({ trim: true, maxLength: 100, description: 'What the link is for, such as the name of its recipient' })),
}, { title: 'CreateUploadLink', examples: [{ seconds: 86400, name: 'For Grace' }] })

export type CreateUploadLink = Static<typeof CreateUploadLink>

const members = {
  id: Id,
  name: Type.String({ description: 'Empty if none was given' }),
  createdAt: Instant,
  expiresAt: Instant,
  createdBy: nullable('The id of the user who created it; null if it was the host'),
  keyId: nullable('The id of the API key with which it was created, which may have been deleted; null without one'),
  keyName: nullable('The name of that key; null if it was deleted, or is not one of the owner of the upload'),
}

/** A link to an upload. Its secret is shown once. */
export const UploadLink = Type.Object(members, { title: 'UploadLink', description: 'A link that serves an upload' })

/** The response to the creation of a link. */
export const NewUploadLink = Type.Object({
  ...members,
  url: Type.String({
    description: 'Serves the bytes without a token, to whoever has it. It is not shown again. Absolute if the public ' +
      'URL is set',
  }),
}, { title: 'NewUploadLink', description: 'The link works' })

/** The response of GET /api/uploads/{id}/links. */
export const UploadLinkList = Type.Array(UploadLink, { description: 'Links that have not expired, newest first' })

/** The path parameters of a link. */
export const UploadLinkParams = Type.Object({ id: Type.String(), linkId: Type.String() })

/** The query of GET /api/uploads/{id}. */
export const DownloadQuery = Type.Object({
  link: Type.Optional(Type.String({ description: 'The secret of a link, which is in its `url`' })),
})
