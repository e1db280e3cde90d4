import { Readable } from 'node:stream'
import fastq from 'fastq'
import { listApiKeys } from '../../db/sign-in/api-keys.ts'
import { listAuditEntries, type AuditEntryRow } from '../../db/audit/audit.ts'
import { findSecondFactors } from '../../db/sign-in/second-factor.ts'
import { listPasskeys } from '../../db/sign-in/passkeys.ts'
import { listSessionsOf } from '../../db/access/sessions.ts'
import { findTotp } from '../../db/sign-in/totp/totp.ts'
import { listDrafts } from '../../db/posts/drafts.ts'
import { listUploadsOfUsers, userUploadsKey } from '../../db/uploads/uploads.ts'
import { BYTES_PER_READ, findAccountData, listExportedPosts, listLinksOfUploads } from '../../db/users/user-export.ts'
import { findUserVersions } from '../../db/users/users.ts'
import { forOwner } from '../../schema/audit/audit.ts'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import { Overloaded, TooManyRequests } from '../../schema/http/errors.ts'
import { baseUrlOf } from '../../schema/options/public-url.ts'
import { UserNotFound } from '../../schema/users/users.ts'
import { copyRow } from '../../db/tables/row.ts'
import type { Audit } from '../audit/index.ts'
import type { Caller } from '../access/caller.ts'
import type { Identity } from '../access/identity.ts'
import type { VisibleUser } from '../access/policy.ts'
import type { StepUp } from '../sign-in/step-up.ts'
import type { Core } from '../core.ts'
import { showLink, showUpload } from '../uploads/show-upload.ts'
import type { UserRecords } from '../users/user-records.ts'

/** How many exports a node sends at once. A slow client holds no connection to the database, but a place. */
const MAX_EXPORTS = 50
// How many statements of exports run at once, so that they leave connections to others.
const READS_AT_ONCE = 2
const ROWS_PER_READ = 200
// When to try again while another export runs.
const RETRY_SECONDS = 5
// Of bytes that wait for the client, besides the piece that was read last.
const BUFFERED_BYTES = 16 * 1024

interface Dependencies extends Core {
  audit: Audit
  stepUp: StepUp
  users: UserRecords
  watchSession: Identity['watchSession']
}

export type UserExports = ReturnType<typeof createUserExports>

/** Exports everything that is stored about a user (contract 11.7), in constant memory. */
export function createUserExports ({
  lifecycle, database: { db }, telemetry: { metrics }, audit, stepUp, users, options, watchSession,
}: Dependencies) {
  const base = `${baseUrlOf(options)}/api/uploads`
  const { exportStall } = options.deadlines
  const running = new Set<Readable>()
  let count = 0
  // The users who are exporting, and those who are exported.
  const busy = new Set<string>()
  const queue = fastq.promise((read: () => Promise<unknown>) => read(), READS_AT_ONCE)
  const ended = metrics.counter(
    'usher_user_exports_total', 'Exports of what is stored about a user that have ended',
    { label: 'result', values: ['finished', 'stopped'] }
  )
  metrics.gauge('usher_user_exports', 'Exports of what is stored about a user that are being sent', () => count)
  lifecycle.addHook('onClose', async () => { for (const stream of running) stream.destroy() })

  const inTurn = <Result>(read: () => Promise<Result>) => queue.push(read) as Promise<Result>

  // Returns a page of something about a user who exists. Throws `UserNotFound` as soon as the user does not, so that
  // an export never ends as if what was being deleted meanwhile had been all.
  const readOf = <Result>(userId: string, read: () => Promise<Result>): Promise<Result> => inTurn(async () => {
    const result = await read()
    const [user] = await findUserVersions(db, [userId])
    if (!user) throw new UserNotFound()
    return result
  })

  const readAccount = (userId: string) => readOf(userId, async () => {
    const [account, totp, { recoveryCodes }, passkeys, apiKeys, sessions] = await Promise.all([
      findAccountData(db, userId),
      findTotp(db, userId),
      findSecondFactors(db, userId),
      listPasskeys(db, userId),
      listApiKeys(db, userId),
      listSessionsOf(db, userId),
    ])
    if (!account) throw new UserNotFound()
    const confirmedAt = totp?.confirmedAt ?? null
    const factors = { totp: confirmedAt && { confirmedAt }, recoveryCodesLeft: recoveryCodes }
    return { ...account, ...factors, passkeys, apiKeys, sessions }
  })

  // Reads pages as they are needed. Rows have keys that never change, so each row that exists all the time is in
  // exactly one page, and none that is new since the first page is in any.
  async function * pagesOf<Row> (
    userId: string, read: (after: Row | undefined) => Promise<Row[]>
  ): AsyncGenerator<Row[]> {
    for (let last: Row | undefined; ;) {
      const rows = await readOf(userId, () => read(last))
      if (rows.length === 0) return
      yield rows
      last = rows.at(-1)
    }
  }

  const postsOf = (userId: string) =>
    pagesOf(userId, (last: { position: string } | undefined) => listExportedPosts(db, userId, last?.position))

  const draftsOf = (authorId: string) => pagesOf(authorId, async (last: { id: string } | undefined) =>
    [...(await listDrafts(db, { authorId, limit: ROWS_PER_READ, after: last?.id }, BYTES_PER_READ)).rows])

  const uploadsOf = (userId: string) => pagesOf(userId, async (last: { id: string } | undefined) => {
    const key = userUploadsKey(userId, { limit: ROWS_PER_READ, after: last?.id, onlyPublic: false })
    const [page] = await listUploadsOfUsers(db, [key])
    const links = Map.groupBy(await listLinksOfUploads(db, page!.rows.map(({ id }) => id)), ({ uploadId }) => uploadId)
    return page!.rows.map((upload) =>
      ({ ...showUpload(upload, base), links: (links.get(upload.id) ?? []).map(showLink) }))
  })

  const entriesOf = (userId: string) => pagesOf(userId, async (last: AuditEntryRow | undefined) =>
    [...(await listAuditEntries(db, { userId, limit: ROWS_PER_READ, after: last?.id })).rows])

  async function * write (
    caller: Caller, user: VisibleUser, account: Awaited<ReturnType<typeof readAccount>>
  ): AsyncGenerator<string> {
    const { id } = user
    yield head(user, account)
    yield * list('posts', postsOf(id), ({ position, ...post }) => post)
    // Nobody else sees drafts, also no admin.
    if (caller.actor?.id === id) {
      yield * list('drafts', draftsOf(id), ({ id, title, content, createdAt, publishAt }) =>
        ({ id, title, content, createdAt, publishAt }))
    }
    yield * list('uploads', uploadsOf(id), (upload) => upload)
    const seesAll = caller.allows('audit:read')
    yield * list('accountLog', entriesOf(id), (entry) => seesAll ? entry : forOwner(entry))
    yield '}'
  }

  // The members that are not lists of any length.
  function head (
    user: VisibleUser, account: Awaited<ReturnType<typeof readAccount>>
  ): string {
    const { hasPassword, emailChangedAt, sessions, networks, links, mails, memberships, invitations, ...ways } = account
    const members = {
      exportedAt: new Date(),
      user: copyRow(user),
      emailChangedAt,
      credentials: { password: hasPassword, ...ways },
      sessions,
      networks,
      memberships,
      pending: { invitations, links, mails },
    }
    return JSON.stringify(members).slice(0, -1)
  }

  // Destroys a stream whose reader has taken nothing for too long, so that it does not hold its place for ever.
  async function * withoutStalls (pieces: AsyncGenerator<string>, stall: () => void): AsyncGenerator<string> {
    let timer: NodeJS.Timeout | undefined
    try {
      for await (const piece of pieces) {
        timer = setTimeout(stall, exportStall).unref()
        yield piece
        clearTimeout(timer)
      }
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    /**
     * Returns a JSON document with everything that is stored about a user, as `UserExport` describes it, in pieces:
     * they are read as the stream is. The stream fails with `UserNotFound` if the user is deleted meanwhile. Destroy
     * it when the reader may not read any more. Throws `Unauthenticated`, `Forbidden`, `SessionRequired`,
     * `StepUpRequired`, `UserNotFound`, `TooManyRequests` if another export by or about the user runs, `Overloaded`.
     */
    async export (caller: Caller, id: string): Promise<Readable> {
      caller.authorize('users:export', { ownerId: id })
      await stepUp.require(caller)
      const { id: userId } = await users.get(id, caller.client)
      const places = [...new Set([userId, ...caller.actor ? [caller.actor.id] : []])]
      if (places.some((place) => busy.has(place))) throw new TooManyRequests(RETRY_SECONDS)
      if (count >= MAX_EXPORTS) throw new Overloaded()
      for (const place of places) busy.add(place)
      count++
      const leave = () => {
        for (const place of places) busy.delete(place)
        count--
      }
      try {
        const account = await readAccount(userId)
        const user = await users.get(userId, caller.client)
        await audit.add(caller, { action: 'user.export', userId })
        await caller.confirm()
        const shown = caller.viewOf(userId).show(user)
        const stall = () => stream.destroy(new Error('Nobody has read the export for too long'))
        const stream: Readable = Readable.from(
          withoutStalls(write(caller, shown, account), stall), { objectMode: false, highWaterMark: BUFFERED_BYTES }
        )
        running.add(stream)
        const unwatch = caller.actor && watchSession(caller.actor, () => stream.destroy(new InvalidToken()))
        stream.once('close', () => {
          unwatch?.()
          running.delete(stream)
          leave()
          ended.add(1, stream.readableEnded ? 'finished' : 'stopped')
        })
        return stream
      } catch (error) {
        leave()
        throw error
      }
    },
  }
}

// Writes a member whose value is a list, page by page.
async function * list<Row> (
  name: string, pages: AsyncGenerator<Row[]>, show: (row: Row) => object
): AsyncGenerator<string> {
  let before = `,"${name}":[`
  for await (const rows of pages) {
    yield before + rows.map((row) => JSON.stringify(show(row))).join()
    before = ','
  }
  yield before === ',' ? ']' : `${before}]`
}
