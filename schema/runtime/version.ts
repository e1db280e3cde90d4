import { Type, type TSchema } from '@sinclair/typebox'
import { acceptedTypes, preferredType } from '../http/media-type.ts'
import { nullable } from '../strings/text.ts'

const VERSION_1 = 'application/vnd.api.v1+json'
const VERSION_2 = 'application/vnd.api.v2+json'
const JSON_TYPE = 'application/json'

/** The media types that are available. A 406 response names them (contract 3.3). */
export const mediaTypes = [JSON_TYPE, VERSION_1, VERSION_2] as const

export type MediaType = typeof mediaTypes[number]

/** Returns the media type of the response, or undefined if the client accepts none (contract 3, RFC 9110 12.5.1). */
export function negotiate (accept: string | undefined): MediaType | undefined {
  // By the letter of RFC 9110, an empty header accepts nothing. In practice it means everything.
  if (!accept?.trim()) return JSON_TYPE
  const best = preferredType(accept, mediaTypes)
  if (best) return best
  // A client that asks for a type that is not a version, such as text/html, gets version 1 rather than 406 (contract
  // 3.2).
  return acceptedTypes(accept).some((type) => !/^application\/vnd\.api\./i.test(type)) ? JSON_TYPE : undefined
}

/** Returns the schema of version 1 of a list, the bare array. */
const versionOne = <Item extends TSchema> (item: Item) => Type.Array(item)

/** Returns the schema of version 2 of a list, an object with the version and the cursor of the next page. */
const versionTwo = <Item extends TSchema> (item: Item) => Type.Object({
  version: Type.String({ description: 'The version of this representation: "2"' }),
  data: Type.Array(item),
  page: Type.Object({
    next: nullable('Cursor of the next page'),
    limit: Type.Integer(),
  }),
})

/**
 * Returns the schemas of a list in each of its versions, for `content()`. The route selects one with `reply.type()`.
 */
export const versions = <Item extends TSchema> (item: Item) => ({
  [JSON_TYPE]: versionOne(item),
  [VERSION_1]: versionOne(item),
  [VERSION_2]: versionTwo(item),
})

/** Returns the body of a page in the version that the media type names. */
export function represent<Item> (type: MediaType, data: readonly Item[], page: { next: string | null, limit: number }) {
  return type === VERSION_2 ? { version: '2', data, page } : data
}
