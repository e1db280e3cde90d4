import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { batchCalls } from '../db/batching.ts'
import { deleteExpiredResults, findResults, KeyTaken, type StoredResult } from '../db/idempotency.ts'
import { ByteBudget } from '../schema/byte-budget.ts'
import {
  createToResultKey, Gone, IdempotencyKeyInUse, IdempotencyKeyReused, isSameRequest, type KeyedRequest, type ResultKey,
} from '../schema/idempotency.ts'
import { purgeRegularly, ROWS_A_PURGE } from './purge.ts'

// How long a repeated request waits for the first one, and how often it asks whether another node has finished that.
const PATIENCE_MS = 1000
const LOOK_MS = 25
const PURGE_SECONDS = 600
// How many bytes the results of changes may have that an actor makes on this node in a day. A creation stores its record anyway, and
// its result at most doubles that, but changes of one record could fill the disk.
const CHANGE_BYTES = 64 * 1024 * 1024
const DAY_MS = 86_400_000
// Rejections after which the first request may nevertheless have succeeded. One that denies a permission is never replaced by a result.
const CONFLICTS: ReadonlySet<unknown> = new Set([400, 404, 409, 412, 413, 422, 429])

declare module 'fastify' {
  interface FastifyInstance {
    usherIdempotency: ReturnType<typeof createIdempotency>
  }
}

/** How a request with a key is performed. */
export interface Steps<Result> {
  /** Whether its write is nearly all of it. Then there is no need to look for the result first, because the write finds out. */
  isQuick?: boolean
  /** Performs it. Its write stores the result under the key, if there is one, and throws `KeyTaken` if the key is taken. */
  operate (key?: ResultKey): Promise<Result>
  /** Returns the result of the first request again. Throws if the caller may not have it any more. */
  restore (stored: StoredResult): Result | Promise<Result>
}

/** The result of a request, and whether it is that of an earlier one. */
export interface Performed<Result> { result: Result, isReplayed: boolean }

/** The right to be the only request of this node with a key, until it is released. */
export interface Claim {
  /** Performs the request, or returns the stored result. Throws `IdempotencyKeyReused`, `IdempotencyKeyInUse`, `Gone`. */
  perform<Result> (key: ResultKey, steps: Steps<Result>): Promise<Performed<Result>>
  release (): void
}

function createIdempotency ({ usherDatabase: { db }, usherTelemetry: { batch }, usherOptions: { secret } }: FastifyInstance) {
  const toResultKey = createToResultKey(secret)
  const find = batchCalls((keys: string[]) => findResults(db, keys), { telemetry: batch('idempotency.find') })
  // The requests of this node that are in progress, by the key of the result.
  const inProgress = new Map<string, Promise<void>>()

  // Returns the stored result of the same request, or undefined if the key is unused.
  async function look ({ key, part, fingerprint }: ResultKey): Promise<StoredResult | undefined> {
    const results = await find(key)
    if (!results.every((result) => isSameRequest(result.fingerprint, fingerprint))) throw new IdempotencyKeyReused()
    const stored = results.find((result) => result.part === part)
    if (stored?.isGone) throw new Gone()
    return stored
  }

  // Another node performs the request. Waits until its result is stored.
  async function awaitResult (key: ResultKey): Promise<StoredResult> {
    for (const until = performance.now() + PATIENCE_MS; performance.now() < until;) {
      const stored = await look(key)
      if (stored) return stored
      await delay(LOOK_MS)
    }
    throw new IdempotencyKeyInUse()
  }

  // Resolves when no request of this node with the key is in progress.
  async function settle (key: string, until: number): Promise<void> {
    for (let busy = inProgress.get(key); busy; busy = inProgress.get(key)) {
      const timer = new AbortController()
      const late = delay(Math.max(0, until - performance.now()), true, { signal: timer.signal }).catch(() => false)
      if (await Promise.race([busy, late])) throw new IdempotencyKeyInUse()
      timer.abort()
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

  async function attempt<Result> (key: ResultKey, { operate, restore }: Steps<Result>, whenTaken: () => Promise<Performed<Result>>): Promise<Performed<Result>> {
    try {
      return { result: await operate(key), isReplayed: false }
    } catch (error) {
      if (error instanceof KeyTaken) return whenTaken()
      if (!CONFLICTS.has((error as { statusCode?: unknown }).statusCode)) throw error
      // The conflict may be one with the first request itself, which another node has just performed.
      const stored = await look(key)
      if (!stored) throw error
      return { result: await restore(stored), isReplayed: true }
    }
  }

  // Performs a request whose result was not stored a moment ago.
  const performNew = <Result>(key: ResultKey, steps: Steps<Result>): Promise<Performed<Result>> =>
    attempt(key, steps, async () => ({ result: await steps.restore(await awaitResult(key)), isReplayed: true }))

  async function performOrRestore<Result> (key: ResultKey, steps: Steps<Result>): Promise<Performed<Result>> {
    const stored = await look(key)
    return stored ? { result: await steps.restore(stored), isReplayed: true } : performNew(key, steps)
  }

  return {
    toResultKey,

    /** How many bytes the results of an actor's changes may have. */
    changes: new ByteBudget(CHANGE_BYTES, DAY_MS),

    /**
     * Performs a request with a key, or returns the stored result of the first request with it (contract 10.4). Throws
     * `IdempotencyKeyReused`, `IdempotencyKeyInUse`, `Gone`, and the errors of the steps.
     * @param keyed the request, or undefined if it has no key
     */
    async once<Result> (keyed: KeyedRequest | undefined, steps: Steps<Result>): Promise<Performed<Result>> {
      if (!keyed) return { result: await steps.operate(), isReplayed: false }
      const key = toResultKey(keyed)
      const until = performance.now() + PATIENCE_MS
      while (!steps.isQuick || inProgress.has(key.key)) {
        await settle(key.key, until)
        // Requests that have waited for the first one share this read.
        const stored = await look(key)
        if (stored) return { result: await steps.restore(stored), isReplayed: true }
        if (!inProgress.has(key.key)) break
      }
      const release = claim(key.key)
      try {
        // The result that takes the key may have expired, and looking deletes it.
        return await (steps.isQuick ? attempt(key, steps, () => performOrRestore(key, steps)) : performNew(key, steps))
      } finally {
        release()
      }
    },

    /**
     * Claims a key before the request is known entirely, such as before a large body is read. Throws `IdempotencyKeyInUse`.
     */
    async claim (actorId: string, key: string): Promise<Claim> {
      const id = toResultKey({ actorId, key, operation: '', content: null }).key
      await settle(id, performance.now() + PATIENCE_MS)
      return {
        perform: performOrRestore,
        release: claim(id),
      }
    },
  }
}

/** Performs requests with an idempotency key once (contract 10.4). docs/decisions/idempotency.md explains how. */
export default fp(async function idempotency (app) {
  app.decorate('usherIdempotency', createIdempotency(app))
  purgeRegularly(app, 'results of requests with an idempotency key', PURGE_SECONDS, () => deleteExpiredResults(app.usherDatabase.db, ROWS_A_PURGE))
}, { name: 'usher-idempotency', dependencies: ['usher-database'] })
