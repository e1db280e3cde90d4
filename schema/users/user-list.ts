import { Type } from '@sinclair/typebox'
import { createHash } from 'node:crypto'
import { decodeCursor } from '../http/cursor.ts'
import { InvalidInput } from '../http/errors.ts'
import { pageQuery } from '../http/params.ts'
import { line } from '../strings/text.ts'
import type { UserKind } from './users.ts'

/** What a list of users may be sorted by; `-` is for descending. */
export const userSorts = ['createdAt', '-createdAt', 'name', '-name', 'email', '-email'] as const

export type UserSort = typeof userSorts[number]

/** The filters and the order of a list of users. */
export const userFilters = {
  role: Type.Optional(line({ description: 'Only users of this role' })),
  email: Type.Optional(line({
    trim: true,
    asciiDomain: true,
    description: 'Only the user with this address, regardless of case',
  })),
  q: Type.Optional(line({
    trim: true,
    minLength: 2,
    maxLength: 100,
    description: 'Only users of whose name or address some word begins with this, regardless of case',
  })),
  kind: Type.Optional(Type.Unsafe<UserKind>({ type: 'string', enum: ['person', 'service'], description: 'Only users of this kind' })),
  disabled: Type.Optional(Type.Boolean({ description: 'Only users who are disabled, or who are not. For admins' })),
  emailVerified: Type.Optional(Type.Boolean({ description: 'Only users whose address is verified, or is not. For admins' })),
  secondFactor: Type.Optional(Type.Boolean({
    description: 'Only users who have an authenticator app, or who have none. For admins',
  })),
  sort: Type.Optional(Type.Unsafe<UserSort>({
    type: 'string', enum: userSorts, description: 'The order; `-` is for descending. By default -createdAt',
  })),
}

/**
 * The query of GET /api/users (contract 2.1, 10.5). A role that no user has is not an error: the response is an empty
 * list.
 */
export const ListUsers = Type.Object({
  ...userFilters,
  limit: pageQuery('Users').limit,
  after: Type.Optional(Type.String({
    format: 'user-cursor', description: 'The cursor of the page, from the `Link` header of the previous page',
  })),
  fields: Type.Optional(
    line({ description: 'The members to return, separated by commas. `id` is always returned. By default all' })
  ),
})

/** The filters and the order to which a cursor belongs. */
export interface UserFilters {
  readonly role?: string | undefined
  readonly email?: string | undefined
  readonly q?: string | undefined
  readonly kind?: UserKind | undefined
  readonly disabled?: boolean | undefined
  readonly emailVerified?: boolean | undefined
  readonly secondFactor?: boolean | undefined
  readonly sort?: UserSort | undefined
}

/** The filters by what only concerns the account of a user. */
export const accountFilters = ['disabled', 'emailVerified', 'secondFactor'] as const

/** Returns whether a query filters by what only concerns the account of a user. */
export const filtersAccounts = (filters: UserFilters): boolean =>
  accountFilters.some((name) => filters[name] !== undefined)

const DIGEST = 6
// A name has at most 200 characters of four bytes, besides the digest and the id.
const LONGEST_CURSOR = 1400

function digestOf ({ role, email, q, sort = '-createdAt', ...filters }: UserFilters): Buffer {
  const others = optionalFilters.map((name) => filters[name] ?? null)
  return createHash('sha256').update(JSON.stringify([role ?? null, email ?? null, q ?? null, sort, ...others]))
    .digest().subarray(0, DIGEST)
}

const optionalFilters = ['kind', ...accountFilters] as const

/**
 * Returns the opaque cursor of a user in a list: a digest of the query, the id, and the value that the list is sorted
 * by.
 */
export function encodeUserCursor (
  { id, key = '' }: { id: string, key?: string | undefined }, filters: UserFilters
): string {
  return Buffer.concat([digestOf(filters), Buffer.from(id.replaceAll('-', ''), 'hex'), Buffer.from(key)])
    .toString('base64url')
}

/** Returns the position in a cursor. Throws `InvalidInput` if it is malformed or belongs to another query. */
export function decodeUserCursor (cursor: string, filters: UserFilters): { id: string, key: string } {
  const bytes = Buffer.from(cursor.slice(0, LONGEST_CURSOR), 'base64url')
  const rest = bytes.subarray(DIGEST + 16)
  const key = rest.toString()
  // PostgreSQL accepts neither NUL nor bytes that are not UTF-8.
  if (bytes.toString('base64url') !== cursor || bytes.length < DIGEST + 16 || key.includes('\0') ||
    !Buffer.from(key).equals(rest)) {
    throw new InvalidInput('after must be a cursor from a previous page')
  }
  if (!bytes.subarray(0, DIGEST).equals(digestOf(filters))) {
    throw new InvalidInput('after must be a cursor of the same query')
  }
  return { id: decodeCursor(bytes.subarray(DIGEST, DIGEST + 16).toString('base64url')), key }
}

/** Returns the members named by the parameter `fields`, with `id`. Throws `InvalidInput` if one is unknown. */
export function readMembers (fields: string | undefined, known: readonly string[]): string[] | undefined {
  if (fields === undefined) return undefined
  const names = [...new Set(fields.split(',').map((name) => name.trim()))]
  const unknown = names.filter((name) => !known.includes(name))
  if (unknown.length > 0) {
    throw new InvalidInput(`fields must be names of members of a user, separated by commas: ${known.join(', ')}`)
  }
  return known.filter((name) => name === 'id' || names.includes(name))
}
