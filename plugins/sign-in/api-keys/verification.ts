import { hash } from 'node:crypto'
import { findApiKeys, storeApiKeyUses, type FoundApiKey } from '../../../db/sign-in/api-keys.ts'
import { batchCalls, type Client } from '../../../db/batching/batching.ts'
import { isConsequence } from '../../../db/driver/circuit-breaker.ts'
import type { WriterToken } from '../../../db/access/live-tokens.ts'
import { InvalidToken } from '../../../schema/sign-in/login.ts'
import type { Actor } from '../../../schema/options/policy.ts'
import type { Core } from '../../core.ts'
import { isKnownRole } from '../../access/memberships.ts'
import type { Claims } from '../../access/claims.ts'
import { throwUnavailable, type Sessions } from '../../access/sessions.ts'
import type { Writers } from '../../access/writers.ts'
import { isWellFormed } from './format.ts'

// Beyond this many keys, the one that was read first is forgotten. Its next request costs a statement.
const MAX_REMEMBERED = 10_000
const STORE_USES_MS = 60_000

/** An API key that this node has read. */
interface RememberedKey {
  readonly token: WriterToken
  readonly actor: Actor
  /** Whether its user needs no second factor: a service, or a person who had used one to create the key. */
  readonly isMultiFactor: boolean
  /** When its actor is made anew, because claims may have changed; milliseconds since 1970, or `Infinity`. */
  readonly claimsUntil: number
  /** The generation of what this node knew of ended sessions when the key was last read; -1 if it is forgotten. */
  generation: number
  /** Does not watch for the end of the key any more. */
  forget: () => void
}

interface Dependencies extends Core {
  claims: Claims
  sessions: Pick<Sessions, 'generation' | 'hasEnded' | 'isLive' | 'watch'>
  writers: Writers
}

export type ApiKeyVerification = ReturnType<typeof createApiKeyVerification>

/**
 * Verifies API keys (contract 17.2). A key is read once. From then on it is live until this node is notified of its
 * end, as of that of a session, or it expires.
 */
export function createApiKeyVerification (
  {
    lifecycle, database: { db, clock }, telemetry: { batch, metrics }, claims, sessions, writers, options,
  }: Dependencies
) {
  // The map's key is the SHA-256 of the API key, so that the memory of the process has no keys.
  const remembered = new Map<string, RememberedKey>()
  const keyOfActor = new WeakMap<Actor, RememberedKey>()
  // When keys were used since that was stored last.
  let uses = new Map<string, number>()
  const read = batchCalls(
    (hashes: string[]) => findApiKeys(db, hashes, options.userFields),
    { timeoutMs: options.deadlines.batch, telemetry: batch('api-keys.read') }
  )
  metrics.gauge('usher_api_keys_remembered', 'API keys that this node has read and verifies without a statement',
    () => remembered.size, { combine: 'max' })

  async function readKey (digest: string, client: Client | undefined): Promise<RememberedKey> {
    const { generation } = sessions
    const found = await read(digest, client).catch(throwUnavailable)
    if (!found) throw new InvalidToken()
    // Without the option or the role, a key of an organisation must not act as one of none.
    if (found.organization && !isKnownRole(options, found.organization)) throw new InvalidToken()
    const added = await claims.of(found.user)
    // It may have been deleted since it was read, and this node was notified of that before it began to watch.
    const { keyId, organization } = found
    if (sessions.hasEnded(keyId) || (organization && sessions.hasEnded(organization.membershipId))) {
      throw new InvalidToken()
    }
    // Another request may have read it as well.
    const known = remembered.get(digest)
    if (known && known.claimsUntil > clock.now()) return known
    known?.forget()
    return remember(digest, found, added, generation)
  }

  function remember (
    digest: string, { keyId, actions, multiFactor, expiresAt, kind, user, organization }: FoundApiKey, added: Actor['claims'],
    generation: number
  ): RememberedKey {
    const actor: Actor = Object.freeze({
      id: user.id,
      role: user.role,
      sessionId: null,
      keyId,
      actions: actions && Object.freeze(actions),
      amr: Object.freeze([]),
      authTime: 0,
      organization: organization && Object.freeze(organization),
      claims: Object.freeze(added),
    })
    const forget = () => {
      unwatch()
      if (remembered.get(digest) === key) remembered.delete(digest)
      key.generation = -1
    }
    const key: RememberedKey = {
      token: {
        id: keyId, kid: '', expires: expiresAt?.getTime() ?? Infinity, membershipId: organization?.membershipId,
      },
      actor,
      isMultiFactor: multiFactor || kind === 'service',
      claimsUntil: options.claims ? clock.now() + options.accessTokenSeconds * 1000 : Infinity,
      generation,
      forget,
    }
    const unwatch = sessions.watch(keyId, forget)
    if (remembered.size >= MAX_REMEMBERED) remembered.values().next().value!.forget()
    remembered.set(digest, key)
    keyOfActor.set(actor, key)
    writers.add(actor, key.token)
    return key
  }

  async function storeUses (): Promise<void> {
    if (uses.size === 0) return
    const stored = uses
    uses = new Map()
    try {
      await storeApiKeyUses(db, stored)
    } catch (err) {
      lifecycle.log[isConsequence(err) ? 'debug' : 'warn']({ err }, 'The times of the last use of API keys are lost')
    }
  }

  const timer = setInterval(storeUses, STORE_USES_MS).unref()
  lifecycle.addHook('onClose', async () => {
    clearInterval(timer)
    await storeUses()
  })

  return {
    /**
     * Returns the actor of an API key, which may have been deleted. Throws `InvalidToken`, without a statement if the
     * form or the checksum is wrong. Rejects with `DatabaseUnavailable`.
     */
    verify (text: string, client?: Client): Actor | Promise<Actor> {
      const digest = hash('sha256', text, 'hex')
      const now = clock.now()
      const known = remembered.get(digest)
      if (known && known.claimsUntil > now) {
        // Whoever uses a key that has been deleted meanwhile gets 401, and leaves no trace in the database.
        if (known.token.expires <= now) throw new InvalidToken()
        uses.set(known.token.id, now)
        return known.actor
      }
      if (!isWellFormed(text)) throw new InvalidToken()
      return readKey(digest, client).then(({ token, actor }) => {
        uses.set(token.id, clock.now())
        return actor
      })
    },

    /**
     * Returns whether an API key has not been deleted. It costs a statement on a node that does not receive
     * notifications, or has missed some since it read the key, and if too many keys are in use to remember this one.
     */
    isLive (actor: Actor, client?: Client): boolean | Promise<boolean> {
      const key = keyOfActor.get(actor)
      if (!key) return false
      const { generation } = sessions
      const isKnown = key.generation === generation
      const live = sessions.isLive(key.token, client, isKnown)
      if (isKnown || live === false) return live
      return Promise.resolve(live).then((isLive) => {
        if (isLive && key.generation !== -1) key.generation = generation
        return isLive
      })
    },

    /** Returns whether the user of a key needs no second factor to use it. */
    isMultiFactor: (actor: Actor): boolean => keyOfActor.get(actor)?.isMultiFactor ?? false,
  }
}
