import { isListType, isNonNullType, type GraphQLOutputType, type GraphQLResolveInfo } from 'graphql'
import type { UserRow } from '../../../db/tables/index.ts'
import { InternalError } from '../../../schema/http/errors.ts'
import { PostNotFound } from '../../../schema/posts/post.ts'
import { UserNotFound } from '../../../schema/users/users.ts'
import { postReadsOf, type GraphQLContext } from '../context.ts'
import { countUsers, readerOf } from '../resolvers/reading.ts'
import { countRows } from '../limits/result-size.ts'

// The bytes of JSON around an item of a list, and of an instant.
const ITEM_BYTES = 4
const INSTANT_BYTES = 24

/**
 * Counts the bytes that a value of the host adds to the response. Throws `ResponseTooLarge` or `Overloaded`.
 * @param isLeaf whether the value is written as it is; otherwise its fields are counted later
 */
export function countValue (context: GraphQLContext, value: unknown, isLeaf: boolean): void {
  const bytes = measure(value, isLeaf)
  if (bytes > 0) context.usher.usherGraphql.limits.results.add(context, bytes)
}

function measure (value: unknown, isLeaf: boolean): number {
  if (typeof value === 'string') return isLeaf ? Buffer.byteLength(value) : 0
  if (typeof value !== 'object' || value === null) return 0
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + ITEM_BYTES + measure(item, isLeaf), 0)
  if (!isLeaf) return 0
  return value instanceof Date ? INSTANT_BYTES : measureJson(value)
}

// A value of a scalar of the host may be any object.
function measureJson (value: object): number {
  try {
    return JSON.stringify(value)?.length ?? 0
  } catch {
    // The scalar of the host may be able to write it.
    return 0
  }
}

/** The types of Usher that a resolver of the host can refer to. */
export type Reference = 'User' | 'Post'

const readers = {
  async User (id: string, context: GraphQLContext) {
    try {
      return await context.usher.usherUsers.get(await readerOf(context, 'users:read'), id)
    } catch (error) {
      if (error instanceof UserNotFound) return error
      throw error
    }
  },

  async Post (id: string, context: GraphQLContext) {
    return await postReadsOf(context).get(await readerOf(context, 'posts:read'), id) ?? new PostNotFound()
  },
}

/**
 * Reads the users or posts to which a value of the host refers: an id, an object with an id, or a list of these. Those
 * that do not exist any more become null, or are left out of a list whose items must not be null. Throws if the reader
 * may not see one.
 */
export async function readReferences (
  kind: Reference, value: unknown, type: GraphQLOutputType, context: GraphQLContext, info: GraphQLResolveInfo
): Promise<unknown> {
  const isRequired = isNonNullType(type)
  const nullable = isRequired ? type.ofType : type
  if (value == null) return null
  if (isListType(nullable)) {
    if (!Array.isArray(value)) return value
    const item: GraphQLOutputType = nullable.ofType
    countValue(context, value, false)
    const read = await Promise.all(value.map((item_) => readReferences(kind, item_, item, context, info)))
    return isNonNullType(item) ? read.filter((row) => !isMissing(row)) : read
  }
  const row = await readers[kind](idOf(kind, value, info), context)
  if (isMissing(row)) return isRequired ? row : null
  if (kind === 'User') await countUsers(context, info, [row as UserRow])
  else countRows(context, info, [row])
  return row
}

const isMissing = (row: unknown) => row instanceof UserNotFound || row instanceof PostNotFound

function idOf (kind: Reference, value: unknown, { parentType, fieldName }: GraphQLResolveInfo): string {
  const id = typeof value === 'object' ? (value as { id?: unknown }).id : value
  if (typeof id === 'string') return id.toLowerCase()
  throw new InternalError({
    cause: new Error(
      `usher: ${parentType.name}.${fieldName} must return the id of a ${kind.toLowerCase()}, or an object with an id`
    ),
  })
}
