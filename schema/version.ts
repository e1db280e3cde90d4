import { Type, type TSchema } from '@sinclair/typebox'
import Negotiator from 'negotiator'

const VERSION_1 = 'application/vnd.api.v1+json'
const VERSION_2 = 'application/vnd.api.v2+json'
const JSON_TYPE = 'application/json'

/** The media types that exist, as a 406 names them (contract 3.3). */
export const mediaTypes = [JSON_TYPE, VERSION_1, VERSION_2] as const

export type MediaType = typeof mediaTypes[number]

// As they are sent: who asks for the parameter gets what who leaves it out does.
const CHARSET = '; charset=utf-8'
const available = mediaTypes.map((type) => type + CHARSET)

/** The media type to answer with, or undefined where none is acceptable (contract 3, RFC 9110 12.5.1). */
export function negotiate (accept: string | undefined): MediaType | undefined {
  // An empty field accepts nothing by the letter and everything in practice.
  if (!accept?.trim()) return JSON_TYPE
  const negotiator = new Negotiator({ headers: { accept } })
  const best = negotiator.mediaType(available)
  if (best) return best.slice(0, -CHARSET.length) as MediaType
  // Who asks for something else than a version, such as text/html, gets version 1 (contract 3.2), not a refusal.
  return negotiator.mediaTypes().some((type) => !type.startsWith('application/vnd.api.')) ? JSON_TYPE : undefined
}

/** Version 1 of a list: the bare array. */
const versionOne = <Item extends TSchema> (item: Item) => Type.Array(item)

/** Version 2 of a list: an object that names its version and carries the page's cursor. */
const versionTwo = <Item extends TSchema> (item: Item) => Type.Object({
  version: Type.String({ description: 'The version of this representation: "2"' }),
  data: Type.Array(item),
  page: Type.Object({
    next: Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'Cursor of the next page' }),
    limit: Type.Integer(),
  }),
})

/** A list's reply in each of its versions, for `content()`; the route says which by `reply.type()`. */
export const versions = <Item extends TSchema> (item: Item) => ({
  [JSON_TYPE]: versionOne(item),
  [VERSION_1]: versionOne(item),
  [VERSION_2]: versionTwo(item),
})

/** The body of a page in the version of its media type. */
export function represent<Item> (type: MediaType, data: readonly Item[], page: { next: string | null, limit: number }) {
  return type === VERSION_2 ? { version: '2', data, page } : data
}
