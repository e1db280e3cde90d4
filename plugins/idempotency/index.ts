import { setTimeout as delay } from 'node:timers/promises'
import fp from 'fastify-plugin'
import { batchCalls } from '../../db/batching/batching.ts'
import { deleteExpiredResults, findResults, KeyTaken, type StoredResult } from '../../db/idempotency/idempotency.ts'
import { settlesWithin } from '../../schema/runtime/in-time.ts'
import {
  createToResultKey, Gone, IdempotencyKeyInUse, IdempotencyKeyReused, isSameRequest, type KeyedRequest, type ResultKey,
} from '../../schema/http/idempotency.ts'
import type { Caller } from '../access/caller.ts'
import { coreOf, type Core } from '../core.ts'
import { TokenBuckets } from '../support/token-bucket.ts'
import { purgeRegularly, PURGE_BATCH_SIZE } from '../support/purge.ts'

// How long a repeated request waits before it first asks whether another node has finished the first one.
const POLL_MS = 25
const PURGE_SECONDS = 600
// How many bytes the results of changes may have that an actor makes on this node in a day. A creation stores its
// record anyway, and its result at most doubles that, but changes of one record could fill the disk.
const CHANGE_BYTES = 64 * 1024 * 1024
const DAY_MINUTES = 1440
// Rejections after which the first request may nevertheless have succeeded. One that denies a permission is never
// replaced by a result.
const CONFLICTS: ReadonlySet<unknown> = new Set([400, 404, 409, 412, 413, 422, 429])

declare module 'fastify' {
  interface FastifyInstance {
    usherIdempotency: Idempotency
  }
}

/** How a request with a key is performed. */
export interface Steps<Result> {
  /**
   * Whether its write is nearly all of it. Then there is no need to look for the result first, because the write finds
   * out.
   */
  isQuick?: boolean
  /**
   * Performs it. Its write stores the result under the key, if there is one, and throws `KeyTaken` if the key is taken.
   */
  operate (key?: ResultKey): Promise<Result>
  /** Returns the result of the first request again. Throws if the caller may not have it any more. */
  restore (stored: StoredResult): Result | Promise<Result>
}

/**
 * Who repeats a request. It may have waited for the first one, so `confirm` throws if its session has ended meanwhile.
 */
export type Repeater = Pick<Caller, 'confirm'>

/** The result of a request, and whether it is that of an earlier one. */
export interface Performed<Result> { result: Result, isReplayed: boolean }

/** The right to be the only request of this node with a key, until it is released. */
export interface Claim {
  /**
   * Performs the request, or returns the stored result. Throws `IdempotencyKeyReused`, `IdempotencyKeyInUse`, `Gone`.
   */
  perform<Result> (key: ResultKey, steps: Steps<Result>, caller: Repeater): Promise<Performed<Result>>
  /** Returns whether a result is stored under the key, whatever request it belongs to. */
  hasResult (): Promise<boolean>
  release (): void
}

export type Idempotency = ReturnType<typeof createIdempotency>

function createIdempotency ({ database: { db }, telemetry: { batch }, options: { secret, deadlines } }: Core) {
  const toResultKey = createToResultKey(secret)
  const find = batchCalls(
    (keys: string[]) => findResults(db, keys), { timeoutMs: deadlines.batch, telemetry: batch('idempotency.find') }
  )
  // The requests of this node that are in progress, by the key of the result.
  const inProgress = new Map<string, Promise<void>>()

  // Returns the stored result of the same request, or undefined if the key is unused.
  async function findStored ({ key, part, fingerprint }: ResultKey): Promise<StoredResult | undefined> {
    const results = await find(key)
    if (!results.every((result) => isSameRequest(result.fingerprint, fingerprint))) throw new IdempotencyKeyReused()
    const stored = results.find((result) => result.part === part)
    if (stored?.isGone) throw new Gone()
    return stored
  }

  // Resolves when no request of this node with the key is in progress. The next step must follow in the same turn.
  async function settle (key: string, until: number): Promise<void> {
    for (let busy = inProgress.get(key); busy; busy = inProgress.get(key)) {
      if (!await settlesWithin(busy, Math.max(0, until - performance.now()))) throw new IdempotencyKeyInUse()
    }
  }

  function claim (key: string): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    inProgress.set(key, promise)
    return () => {
      inProgress.delete(key)
      resolve()
    }
  }

  // Returns the stored result as that of this request, or undefined if there is none.
  async function replay<Result> (
    key: ResultKey, { restore }: Steps<Result>, caller: Repeater
  ): Promise<Performed<Result> | undefined> {
    const stored = await findStored(key)
    if (!stored) return
    await caller.confirm()
    return { result: await restore(stored), isReplayed: true }
  }

  // Performs a request. While another node performs the same one, tries again, because that one may fail.
  async function perform<Result> (
    key: ResultKey, steps: Steps<Result>, caller: Repeater, until: number
  ): Promise<Performed<Result>> {
    for (let wait = POLL_MS; ; wait *= 2) {
      const left = until - performance.now()
      try {
        return { result: await steps.operate(key), isReplayed: false }
      } catch (error) {
        const isTaken = error instanceof KeyTaken
        if (!isTaken && !CONFLICTS.has((error as { statusCode?: unknown }).statusCode)) throw error
        // A conflict may be one with the first request itself, which another node has just performed.
        const replayed = await replay(key, steps, caller)
        if (replayed) return replayed
        if (!isTaken) throw error
      }
      if (left <= 0) throw new IdempotencyKeyInUse()
      await delay(Math.min(wait, left))
    }
  }

  return {
    toResultKey,

    /** How many bytes the results of an actor's changes may have. */
    changes: new TokenBuckets({ burst: CHANGE_BYTES, perMinute: CHANGE_BYTES / DAY_MINUTES }),

    /**
     * Performs a request with a key, or returns the stored result of the first request with it (contract 10.4). Throws
     * `IdempotencyKeyReused`, `IdempotencyKeyInUse`, `Gone`, and the errors of the steps.
     * @param keyed the request, or undefined if it has no key
     */
    async once<Result> (
      keyed: KeyedRequest | undefined, steps: Steps<Result>, caller: Repeater
    ): Promise<Performed<Result>> {
      if (!keyed) return { result: await steps.operate(), isReplayed: false }
      const key = toResultKey(keyed)
      const until = performance.now() + deadlines.idempotency
      while (!steps.isQuick || inProgress.has(key.key)) {
        await settle(key.key, until)
        // Requests that have waited for the first one share this read.
        const replayed = await replay(key, steps, caller)
        if (replayed) return replayed
        if (!inProgress.has(key.key)) break
      }
      const release = claim(key.key)
      try {
        return await perform(key, steps, caller, until)
      } finally {
        release()
      }
    },

    /**
     * Claims a key before the request is known entirely, such as before a large body is read. Throws
     * `IdempotencyKeyInUse`.
     */
    async claim (actorId: string, key: string): Promise<Claim> {
      const id = toResultKey({ actorId, key, operation: '', content: null }).key
      const until = performance.now() + deadlines.idempotency
      // Of several requests that have waited, the first one claims the key, and the others wait for it.
      do await settle(id, until)
      while (inProgress.has(id))
      return {
        perform: async (key, steps, caller) =>
          await replay(key, steps, caller) ?? perform(key, steps, caller, performance.now() + deadlines.idempotency),
        hasResult: async () => (await find(id)).length > 0,
        release: claim(id),
      }
    },
  }
}

/** Performs requests with an idempotency key once (contract 10.4). docs/decisions/idempotency.md explains how. */
export default fp(async function idempotency (app) {
  app.decorate('usherIdempotency', createIdempotency(coreOf(app)))
  purgeRegularly(app, 'results of requests with an idempotency key', PURGE_SECONDS, () =>
    deleteExpiredResults(app.usherDatabase.db, PURGE_BATCH_SIZE))
}, { name: 'usher-idempotency', dependencies: ['usher-options', 'usher-telemetry', 'usher-database'] })
