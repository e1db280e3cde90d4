import { sql, type RawBuilder } from 'kysely'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import type { Match } from '../../schema/http/entity-tag.ts'
import { Overloaded, PreconditionFailed } from '../../schema/http/errors.ts'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import { PostNotFound, TooManyDrafts } from '../../schema/posts/post.ts'
import { UserNotFound } from '../../schema/users/users.ts'
import { newId } from '../driver/ids.ts'
import { isInTime } from '../driver/write-in-time.ts'
import { isAdmitted, isolateConflicts, keyedOf, KeyTaken, withIdempotencyKeys } from '../idempotency/idempotency.ts'
import { actorValue, withEvents } from '../outbox/store.ts'
import {
  confirmSession, confirmSessions, findEndedSessions, hasLiveSession, isLiveSession, isolateEnded, rejectEnded,
  requireLiveSession,
} from '../access/live-sessions.ts'
import type { WriterToken } from '../access/live-tokens.ts'
import { inOrder, isUuid, prepare, violates } from '../driver/postgres.ts'
import { postColumns, type PostRow } from './posts.ts'
import { draftColumns, type DraftRow } from './drafts.ts'
import { counting, findExceeded, joinCounted } from './rates.ts'
import { hasVersion, versionsOf } from '../users/preconditions.ts'
import { selectWritten, type Ending } from '../idempotency/select-written.ts'
import type { Database } from '../tables/index.ts'

/**
 * Returns where a statement finds the events of the posts that it changes.
 * @param row the rows with the `id` and the `title` of each post
 * @param author the column with the id of its author
 */
export function postData (row: string, author: string, actor: string | ReturnType<typeof actorValue>) {
  return {
    subject: `${row}.id`, data: { postId: `${row}.id`, authorId: author, title: `${row}.title`, actorId: actor },
  }
}

export interface NewPost {
  /** A UUIDv7. By default a new one. */
  id?: string
  authorId: string
  title: string
  content: string
  /** The user who creates or changes it. Null, or absent, if it is not a user. */
  actorId?: string | null | undefined
  /** The token of the actor, which must still be valid. Null, or absent, if there is none. */
  token?: WriterToken | null | undefined
  /** Under what the result is stored. */
  once?: ResultKey | undefined
}

/**
 * Creates posts, as one statement. Returns the created posts in the order of their positions, which is the order of
 * `posts`. In place of a post that was not created, there is an error, which does not affect the others: `InvalidToken`
 * if the session of its actor has ended, `KeyTaken` if its key is taken, `UserNotFound` if its author is unknown.
 * PostgreSQL notifies the nodes at the commit.
 *
 * The authors' rows are locked, so that no author is deleted before the commit. If another transaction has locked an
 * author's row, such as a deletion that may still be rolled back, the post yields `Overloaded`. Waiting for that row
 * would block all new posts: PostgreSQL first runs the trigger that takes the lock, `post_ordered`, and
 * every insert waits for that lock.
 *
 * @param perHour the number of posts that each actor may create in an hour. A post beyond it yields `TooManyPosts`
 * @param quiet suppresses the notification, for nodes that announce posts through an emitter
 */
export async function insertPosts (
  db: Database, posts: readonly NewPost[], { quiet = false, perHour = 0 } = {}
): Promise<(PostRow | Error)[]> {
  return isolateConflicts(db, posts, (posts) => isolateEnded(db, posts, (posts) => insertAll<PostRow>(db, posts, {
    kind: 'post',
    perHour,
    insert: (statement, from) => withEvents(
      statement.with('created', (cte) => cte.insertInto('posts').columns(['id', 'author_id', 'title', 'content'])
        .expression(sql`select given.id, author, title, content ${from} ${quiet ? andQuiet : sql``} order by given.id`)
        .returning(postColumns)),
      db, 'post.created', { from: CREATED, ...postData('created', 'given.author', 'given.actor') }
    ),
  })))
}

/**
 * Creates a draft. Throws what `insertPosts` yields, and `TooManyDrafts`.
 * @param publishAt when it will be published
 * @param perHour the number of posts and drafts that its actor may create in an hour
 */
export async function insertDraft (
  db: Database, { publishAt, ...draft }: NewPost & { publishAt: Date | null }, { perHour = 0 } = {}
): Promise<DraftRow> {
  try {
    const [row] = await rejectEnded(() => insertAll<DraftRow>(db, [draft], {
      kind: 'draft',
      perHour,
      insert: (statement, from) => statement.with('created', (cte) => cte.insertInto('post_drafts')
        .columns(['id', 'author_id', 'title', 'content', 'publish_at'])
        .expression(sql`select given.id, author, title, content, ${publishAt}::timestamptz ${from}`)
        .returning(draftColumns)),
    }))
    if (row instanceof Error) throw row
    return row!
  } catch (error) {
    throw violates(db, error, 'post_drafts', 'drafts_per_author') ? new TooManyDrafts() : error
  }
}

interface Insertion {
  kind: 'post' | 'draft'
  perHour: number
  /**
   * Adds to a statement that it inserts `created`.
   * @param from where it finds the `id`, `author`, `title` and `content` of what is admitted
   */
  insert (statement: Database, from: RawBuilder<unknown>): object
}

const CREATED = 'created inner join given on given.id = created.id'

async function insertAll<Created extends { id: string }> (
  db: Database, posts: readonly NewPost[], { kind, perHour, insert }: Insertion
): Promise<(Created | Error)[]> {
  const ids = posts.map(({ id }) => id ?? newId(db))
  const authors = posts.map(({ authorId }) => isUuid(authorId) ? authorId : null)
  const actors = posts.map(({ actorId = null }) => actorId)
  const keyed = keyedOf(ids, posts.map(({ once }) => once))
  const sessions = posts.map(({ token }) => token?.id ?? null)
  const isLimited = perHour > 0 && actors.some((actor) => actor !== null)
  const admitted = keyed
    ? sql<boolean>`${hasLiveSession('session')} and ${isAdmitted('given.id')}`
    : hasLiveSession('session')
  const given = (keyed ? withIdempotencyKeys(db, keyed) : db)
    .with('given', (cte) => cte.selectFrom(sql<Record<
      'id' | 'author' | 'title' | 'content' | 'actor' | 'session', string
    >>`unnest(
      ${ids}::uuid[], ${authors}::uuid[], ${posts.map(({ title }) => title)}::text[], ${posts.map(({ content }) => content)}::text[],
      ${actors}::uuid[], ${sessions}::uuid[]
    )`.as<'posts'>(sql`posts(id, author, title, content, actor, session)`)).selectAll())
    .with('authors', (cte) => cte.selectFrom('users').select('id')
      .where('id', '=', sql<string>`any(${authors}::uuid[])`)
      .orderBy('id').forKeyShare().skipLocked()) as unknown as Database
  const query = insert(
    isLimited ? counting(given, admitted) : given,
    sql`from given inner join authors on authors.id = author
      ${isLimited ? joinCounted(perHour) : sql``} where ${isLimited ? sql`true` : admitted}`
  )
  const condition = confirmSessions(db, CREATED, 'given.session', posts.map(({ token }) => token))
  const { written, refused } = await selectWritten<Created>(db, query, { from: 'created', kind, keyed, condition })
  const created = inOrder(ids, written)
  if (written.length === posts.length) return created as Created[]
  const known = new Set((await findUserIds(db, { ids: authors })).map(({ id }) => id))
  const ended = await findEndedSessions(db, sessions)
  const exceeded = isLimited ? await findExceeded(db, actors, perHour) : undefined
  return created.map((row, index) => {
    if (row) return row
    if (ended.has(sessions[index])) return new InvalidToken()
    if (refused.has(ids[index]!)) return new KeyTaken()
    if (!known.has(authors[index]?.toLowerCase() ?? '')) return new UserNotFound()
    return exceeded?.get(actors[index]!) ?? new Overloaded()
  })
}

// The condition is always true. It sets `usher.quiet` for this statement only.
export const andQuiet = sql`and (select set_config('usher.quiet', 'on', true)) is not null`

const findUserIds = prepare((db, { ids }: { ids: readonly (string | null)[] }) => db.selectFrom('users').select('id')
  .where('id', '=', sql<string>`any(${ids}::uuid[])`))

/** The conditions of a change of a post. */
export interface PostConditions {
  /** That of `isInTime`. */
  until: string
  /** The versions that the post may have. */
  match?: Match
  /** The key under which the result is stored. */
  once?: ResultKey | undefined
}

/**
 * Returns a condition: the row of a post or draft is the one with this id, and may be changed. Run the statement with
 * the keys of the condition `once`.
 */
export function isChangeable (
  table: 'posts' | 'post_drafts', id: string, token: NewPost['token'], { until, match, once }: PostConditions
): RawBuilder<boolean> {
  const versions = versionsOf(match)
  return sql`${sql.ref(`${table}.id`)} = ${id} and ${isInTime(until)} and ${isLiveSession(token)}
    and ${once ? isAdmitted(`${table}.id`) : sql`true`}
    and ${versions === null ? sql`true` : hasVersion(sql.ref(`${table}.row_version`), sql`${versions}`)}`
}

/**
 * Runs a statement of one session that writes at most one row, and returns that row. Throws `InvalidToken` if the
 * session has ended, and `KeyTaken`.
 */
export async function writeOne<Written extends object> (
  db: Database, query: object, ending: Ending
): Promise<Written | undefined> {
  const { written: [row], refused } = await rejectEnded(() => selectWritten<Written>(db, query, ending))
  if (refused.size > 0) throw new KeyTaken()
  return row
}

/**
 * Updates the title, the content or both. Throws `PostNotFound`, `PreconditionFailed`, `InvalidToken` if the session
 * has ended, and `KeyTaken` if the key `once` is taken.
 */
export async function updatePost (
  db: Database, id: string, { title, content, actorId = null, token }: Partial<NewPost>,
  conditions: PostConditions
): Promise<PostRow> {
  const keyed = keyedOf([id], [conditions.once])
  const statement = (keyed ? withIdempotencyKeys(db, keyed) : db).with('updated', (cte) => cte.updateTable('posts')
    .set({ ...title !== undefined && { title }, ...content !== undefined && { content }, updated_at: sql`now()` })
    .where(isChangeable('posts', id, token, conditions))
    .returning(postColumns))
  const query = withEvents(statement, db, 'post.updated', {
    from: 'updated', ...postData('updated', 'updated."authorId"', actorValue(actorId)),
  })
  const post = await writeOne<PostRow>(db, query, {
    from: 'updated', kind: 'post-update', keyed, condition: confirmSession(db, 'updated', token),
  })
  return post ?? await whyUnchanged(db, id, conditions.match, token)
}

/**
 * Deletes a post. Throws what `updatePost` throws.
 * @param actor the user who deletes it, and the token
 */
export async function deletePost (
  db: Database, id: string, { actorId = null, token }: Pick<NewPost, 'actorId' | 'token'>,
  conditions: PostConditions
): Promise<void> {
  const keyed = keyedOf([id], [conditions.once])
  const statement = (keyed ? withIdempotencyKeys(db, keyed) : db).with('deleted', (cte) => cte.deleteFrom('posts')
    .where(isChangeable('posts', id, token, conditions))
    .returning(['id', 'author_id', 'title']))
  const query = withEvents(statement, db, 'post.deleted', {
    from: 'deleted', ...postData('deleted', 'deleted.author_id', actorValue(actorId)),
  })
    .with('known', (cte) => cte.selectFrom('deleted').select(['id', 'author_id as authorId']))
  const deleted = await writeOne(db, query, {
    from: 'known', kind: 'post-deletion', keyed, condition: confirmSession(db, 'known', token), hasVersion: false,
  })
  if (!deleted) await whyUnchanged(db, id, conditions.match, token)
}

// Throws why a change has matched no row.
async function whyUnchanged (db: Database, id: string, match: Match, token: NewPost['token']): Promise<never> {
  await requireLiveSession(db, token)
  if (versionsOf(match) === null) throw new PostNotFound()
  throw await db.selectFrom('posts').select('id').where('id', '=', id).executeTakeFirst()
    ? new PreconditionFailed()
    : new PostNotFound()
}
