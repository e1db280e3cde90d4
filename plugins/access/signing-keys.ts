import { createPublicKey, sign, verify } from 'node:crypto'
import { isConsequence } from '../../db/driver/circuit-breaker.ts'
import { channelOf } from '../../db/driver/channel.ts'
import { batchCalls } from '../../db/batching/batching.ts'
import { isEncrypted } from '../../db/sign-in/encryption.ts'
import {
  algorithmOf, changeSigningAlgorithm, deleteSupersededSigningKeys, insertFirstSigningKey, LEAD_SECONDS,
  listSigningKeys, openSigningKey, replacePlainSigningKeys, rotateSigningKey, type SigningKeyRow,
} from '../../db/access/signing-keys.ts'
import { DatabaseUnavailable } from '../../schema/http/errors.ts'
import type { SigningAlgorithm } from '../../schema/options/signing-algorithm.ts'
import type { Core } from '../core.ts'
import { longestLifeOf } from './token-lifetime.ts'

// How often the keys are read in any case, and the least time between two reads because of an unknown key.
const POLL_MS = 60_000
const PAUSE_MS = 1000

export type SigningKeys = Awaited<ReturnType<typeof createSigningKeys>>

interface SigningKey {
  id: string
  algorithm: SigningAlgorithm
  /** SPKI, PEM. */
  publicKey: string
  /** PKCS #8, PEM; undefined if it cannot be decrypted. */
  privateKey?: string
  /** Why it cannot be decrypted. */
  problem?: Error
  /** When it begins to sign, by the clock of `performance.now()`, which cannot be set. */
  activeAt: number
  /** When the last token that it has signed expires, by the same clock. */
  expiresAt: number
  jwk: ReturnType<typeof toJwk>
}

/** The key that signs. */
interface CurrentKey { id: string, algorithm: SigningAlgorithm, privateKey: string }

const digestOf: Readonly<Record<SigningAlgorithm, string | null>> = { EdDSA: null, ES256: 'sha256' }

// What a token signs has no space (RFC 7515 5.1).
const withPrefix = (data: Uint8Array) => Buffer.concat([Buffer.from('usher '), data])

/** Keeps the signing keys of the database in memory, and rotates them by age (contract 4). */
export async function createSigningKeys (
  { lifecycle, database: { db, notifications, atStart }, telemetry: { batch }, options }: Core
) {
  const { log } = lifecycle
  const { schema, secret, signingAlgorithm: algorithm, signingKeySeconds } = options
  const tokenSeconds = longestLifeOf(options)
  // In reverse order of their activation: the newest comes first.
  let keys: ReadonlyMap<string, SigningKey> = new Map()
  let renewing = Promise.resolve()
  // The id of the key about whose algorithm this node has warned.
  let warnedOf: string | undefined
  let [learning, learnedAt] = [Promise.resolve(), -Infinity]
  const listeners = new Set<() => void>()
  // How many changes have been announced, and how many of them `keys` includes.
  let [announced, included] = [0, 0]
  // One read runs at a time, so that an older result never replaces a newer one.
  const load = batchCalls(
    async () => [await read()], { inFlight: 1, timeoutMs: Infinity, telemetry: batch('signing-keys.read') }
  )
  const newest = () => keys.values().next().value!
  const hasSigned = ({ activeAt }: SigningKey, seconds: number) => performance.now() - activeAt >= seconds * 1000

  await start()
  notifications.listen(channelOf(schema, 'keys_changed'), onChange, refresh)
  // The interval is random, so that nodes that start together do not all read at once.
  const timer = setInterval(poll, POLL_MS * (0.5 + Math.random())).unref()
  lifecycle.addHook('onClose', async () => {
    clearInterval(timer)
    await renewing
  })

  async function start (): Promise<void> {
    const rows = await read(atStart.signingKeys)
    const { problem } = newest()
    if (problem) throw problem
    if (secret !== undefined && !rows.every(({ privateKey }) => isEncrypted(privateKey))) {
      await replacePlainSigningKeys(db, { secret, algorithm })
      await read()
    }
    // Only a start changes the algorithm. If a rotation did, nodes with different options would replace each other's
    // keys forever.
    if (algorithm === undefined || newest().algorithm === algorithm) return
    if (await changeSigningAlgorithm(db, { secret, algorithm })) {
      log.info({ algorithm, seconds: LEAD_SECONDS }, 'A key of another algorithm will sign access tokens')
    }
    await read()
  }

  async function read (known?: SigningKeyRow[]): Promise<SigningKeyRow[]> {
    const changes = announced
    const listed = known ?? await listSigningKeys(db)
    // There are none on the first start, and after somebody has deleted all of them to invalidate every token.
    const rows = listed.length > 0 ? listed : await insertFirstSigningKey(db, { secret, algorithm })
    keys = new Map(rows.map((row, index) => [row.id, toKey(row, rows[index - 1])]))
    included = changes
    for (const notify of listeners) notify()
    return rows
  }

  // A private key that this node knows is kept: another node may have encrypted it meanwhile, with a secret that is
  // new.
  function toKey ({ activeIn, ...row }: SigningKeyRow, successor?: SigningKeyRow): SigningKey {
    const { id, publicKey } = row
    const now = performance.now()
    const expiresAt = successor ? now + (successor.activeIn + tokenSeconds) * 1000 : Infinity
    const algorithm = algorithmOf(publicKey)
    const key = {
      id, algorithm, publicKey, activeAt: now + activeIn * 1000, expiresAt, jwk: toJwk(id, algorithm, publicKey),
    }
    try {
      return { ...key, privateKey: keys.get(id)?.privateKey ?? openSigningKey(options, row) }
    } catch (problem) {
      return { ...key, problem: problem as Error }
    }
  }

  async function refresh (): Promise<void> {
    await load('keys')
    const { problem } = newest()
    if (problem) log.error({ err: problem }, 'The newest signing key cannot be used')
    warnOfOtherAlgorithm()
    renewing = renewing.then(renew).catch(reportFailure('The signing keys could not be renewed'))
  }

  function warnOfOtherAlgorithm (): void {
    const { id, algorithm: others } = newest()
    if (algorithm === undefined || others === algorithm || warnedOf === id) return
    warnedOf = id
    log.warn({ algorithm: others, signingAlgorithm: algorithm },
      'The newest signing key has another algorithm than the option: give all nodes the same signingAlgorithm')
  }

  // An outage is logged once, by the circuit breaker, and the keys are read again.
  function reportFailure (message: string): (err: unknown) => void {
    return (err) => log[isConsequence(err) ? 'debug' : 'error']({ err }, message)
  }

  function onChange (): void {
    announced++
    poll()
  }

  function poll (): void {
    refresh().catch(reportFailure('The signing keys could not be read'))
  }

  // Rotates the keys if that is due, and deletes those that are not needed any more. A trigger then notifies all nodes,
  // this one included.
  async function renew (): Promise<void> {
    // A node that does not have the new secret yet cannot decrypt the newest key, and leaves the rotation to others.
    const due = !newest().problem && hasSigned(newest(), signingKeySeconds)
    if (due) await rotateSigningKey(db, { secret, tokenSeconds, ageSeconds: signingKeySeconds })
    const settled = [...keys.values()].findIndex((key) => hasSigned(key, tokenSeconds))
    if (settled >= 0 && settled < keys.size - 1) await deleteSupersededSigningKeys(db, tokenSeconds)
  }

  function find (kid: string): Pick<SigningKey, 'algorithm' | 'publicKey'> | undefined {
    const key = keys.get(kid)
    return key && isValid(key) ? key : undefined
  }

  async function learn (): Promise<void> {
    if (performance.now() - learnedAt >= PAUSE_MS) {
      learnedAt = performance.now()
      learning = load('keys').then(() => {})
    }
    await learning.catch((cause) => { if (!notifications.connected) throw new DatabaseUnavailable({ cause }) })
  }

  return {
    /** Returns the key that signs: the newest one that is active. Throws if no key can be decrypted. */
    current (): CurrentKey {
      const usable = [...keys.values()].filter((key) => key.privateKey !== undefined)
      // After a change of the secret, it may be that no usable key is active. Then the one that is active soonest
      // signs.
      const key = usable.find((key) => hasSigned(key, 0)) ?? usable.at(-1)
      if (!key) throw new Error('no signing key can be decrypted', { cause: newest().problem })
      return { id: key.id, algorithm: key.algorithm, privateKey: key.privateKey! }
    },

    /**
     * Returns the public key of a `kid` in PEM, and its algorithm, or undefined if it is unknown or every token that
     * it signed has expired.
     */
    find,

    /** Calls `listener` whenever the keys have been read: some may have been revoked. */
    onRead: (listener: () => void): void => void listeners.add(listener),

    /** Whether `find` knows of every change that has been announced. */
    get isUpToDate () { return included === announced },

    /**
     * Reads the keys because one is unknown: once a second at most, however many tokens name unknown keys. Throws
     * `DatabaseUnavailable` if that fails on a node that does not receive notifications and may have missed a new key.
     */
    learn,

    /** Signs something that is not a token. What it begins with keeps the signature from being that of a token. */
    sign: ({ algorithm, privateKey }: Pick<CurrentKey, 'algorithm' | 'privateKey'>, data: Uint8Array): Uint8Array =>
      sign(digestOf[algorithm], withPrefix(data), { key: privateKey, dsaEncoding: 'ieee-p1363' }),

    /**
     * Returns whether a signature of `sign` is that of a valid key. Rejects with `DatabaseUnavailable`, as `learn`
     * does.
     */
    async verify (kid: string, data: Uint8Array, signature: Uint8Array): Promise<boolean> {
      if (!find(kid)) await learn()
      const key = find(kid)
      if (!key) return false
      const publicKey = { key: key.publicKey, dsaEncoding: 'ieee-p1363' } as const
      return verify(digestOf[key.algorithm], withPrefix(data), publicKey, signature)
    },

    /** The public keys as a key set (RFC 7517). It includes keys that do not sign yet. */
    get keySet () { return { keys: [...keys.values()].filter(isValid).map(({ jwk }) => jwk) } },
  }
}

const isValid = ({ expiresAt }: SigningKey): boolean => performance.now() < expiresAt

function toJwk (id: string, alg: SigningAlgorithm, publicKey: string) {
  const { kty, crv, x, y } = createPublicKey(publicKey).export({ format: 'jwk' })
  return { kty: kty!, crv: crv!, x: x!, ...y !== undefined && { y }, kid: id, alg, use: 'sig' }
}
