import type { Sql } from 'postgres'
import { encodePlace } from '../../../schema/http/cursor.ts'

/** A post as it is in the database. */
export interface StoredPost {
  readonly id: string
  readonly title: string
  readonly authorId: string
  readonly cursor: string
}

/** Returns all posts in the order in which subscribers get them. */
export async function readPosts (sql: Sql): Promise<StoredPost[]> {
  const rows = await sql<{ id: string, title: string, position: string, epoch: number, author_id: string }[]>`
    select id, title, position, epoch, author_id from posts order by position`
  return rows.map(({ position, epoch, author_id: authorId, ...row }) =>
    ({ ...row, authorId, cursor: encodePlace({ position, epoch }) }))
}

/**
 * Compares the events of a subscriber with the expected ones. Returns missing, duplicate and unexpected events, and
 * whether all arrived in order.
 */
export function compareEvents (seen: readonly string[], expected: readonly string[]) {
  const places = new Map(expected.map((cursor, place) => [cursor, place]))
  const found = new Set<string>()
  const twice = seen.filter((cursor) => found.has(cursor) || !found.add(cursor))
  return {
    lost: expected.filter((cursor) => !found.has(cursor)),
    twice,
    others: seen.filter((cursor) => !places.has(cursor)),
    isOrdered: seen.every((cursor, index) => index === 0 || places.get(cursor)! > places.get(seen[index - 1]!)!),
  }
}

export function isExact ({ lost, twice, others, isOrdered }: ReturnType<typeof compareEvents>): boolean {
  return lost.length + twice.length + others.length === 0 && isOrdered
}
