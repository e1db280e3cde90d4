import { createHash } from 'node:crypto'
import { InvalidInput } from './errors.ts'

/**
 * Returns the strong entity tag of a record (contract 10.1): that of the version of its row, and of the variant in
 * which it is sent.
 * @param version a bigint, as text
 * @param variant what else the bytes of the response depend on, such as the media type or what the reader may see. By
 * default there is one representation only
 */
export const entityTag = (version: string, variant = ''): string => createEntityTag(variant)(version)

/** Returns the function that makes the entity tags of a variant, for variants of which many records are sent. */
export function createEntityTag (variant: string): (version: string) => string {
  const end = variant === '' ? '"' : `.${digest([variant])}"`
  return (version) => `"${spellingOf(version)}${end}`
}

/**
 * Returns the strong entity tag of a representation that depends on several texts, such as a query and the versions of
 * a page's rows.
 */
export const combinedTag = (parts: readonly string[]): string => `"${digest(parts)}"`

/**
 * Returns the strong entity tag of a page whose rows have no versions: that of their values.
 * @param variant what else the bytes of the response depend on
 */
export const pageTag = (rows: readonly object[], ...variant: string[]): string =>
  combinedTag([...variant, ...rows.flatMap((row) => Object.values(row).map(textOf))])

// Null differs from every text.
function textOf (value: unknown): string {
  return value === null ? '' : value instanceof Date ? `${value.getTime()}` : ` ${value as string}`
}

// The lengths keep two different lists from having the same digest.
const digest = (parts: readonly string[]): string => createHash('sha256')
  .update(parts.map((part) => `${part.length}:${part}`).join()).digest('base64url').slice(0, 22)

/** What the field `If-Match` permits: the versions of a row, as texts, or any version. Undefined without the field. */
export type Match = readonly string[] | '*' | undefined

const ENTITY_TAG = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/

/**
 * Reads the field `If-Match` (contract 10.2; RFC 9110 13.1.1). Weak tags never match, and neither do tags of something
 * else. The variant does not matter, because all variants of a row change together. Throws `InvalidInput` if the field
 * is malformed.
 * @param name how messages call the field
 */
export function readIfMatch (field: string | undefined, name = 'If-Match'): Match {
  return readTags(field, name, (tag) => tag)
}

/**
 * Reads the field `If-None-Match` of a change (RFC 9110 13.1.2). Returns the versions that the row must not have, `*`
 * if the row must not exist. Weak tags match as well. Throws `InvalidInput` if the field is malformed.
 */
export function readIfNoneMatch (field: string | undefined): Match {
  return readTags(field, 'If-None-Match', (tag) => tag.replace(/^W\//, ''))
}

function readTags (field: string | undefined, name: string, comparable: (tag: string) => string): Match {
  if (field === undefined) return undefined
  if (field.trim() === '*') return '*'
  // A comma may be part of a tag.
  const tags = field.trim().match(/(?:W\/)?"[^"]*"|[^,\s]+/g) ?? ['']
  if (!tags.every((tag) => ENTITY_TAG.test(tag))) throw new InvalidInput(`${name} must be * or a list of entity tags`)
  return tags.map(comparable).flatMap((tag) => {
    const text = /^"([0-9a-z]{1,13})(?:\.[\w-]+)?"$/.exec(tag)?.[1]
    if (text === undefined) return []
    const version = versionOf(text)
    // Another spelling of the same number is the tag of nothing.
    return spellingOf(version) === text ? [version] : []
  })
}

/** Returns whether `If-Match` permits a change of a row that exists. */
export const permits = (match: Match, version: string): boolean =>
  match === undefined || match === '*' || match.includes(version)

const spellingOf = (version: string): string => BigInt.asUintN(64, BigInt(version)).toString(36)

// Returns the version that a tag was made of.
function versionOf (text: string): string {
  let version = 0n
  for (const digit of text) version = version * 36n + BigInt(Number.parseInt(digit, 36))
  return BigInt.asIntN(64, version).toString()
}
