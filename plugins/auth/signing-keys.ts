import { createPublicKey } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { channelOf } from '../../db/driver/channel.ts'
import { batchCalls, type Client } from '../../db/batching.ts'
import { isEncrypted } from '../../db/encryption.ts'
import {
  deleteSupersededSigningKeys, insertFirstSigningKey, listSigningKeys, openSigningKey, replacePlainSigningKeys, rotateSigningKey, type SigningKeyRow
} from '../../db/signing-keys.ts'
import { DatabaseUnavailable, UsherError } from '../../schema/errors.ts'
import { longestLifeOf } from './tokens.ts'

const LOOK_MS = 60_000
// Between two reads for the sake of keys that nobody has heard of.
const PAUSE_MS = 1000

declare module 'fastify' {
  interface FastifyInstance {
    usherSigningKeys: Awaited<ReturnType<typeof createSigningKeys>>
  }
}

interface SigningKey {
  id: string
  /** SPKI, PEM. */
  publicKey: string
  /** PKCS #8, PEM; none where it cannot be opened. */
  privateKey?: string
  /** Why it cannot. */
  problem?: Error
  /** By the clock of `performance.now()`, which nobody sets. */
  activeAt: number
  /** When the last token that it signed expires, by the same clock. */
  expiresAt: number
  jwk: ReturnType<typeof toJwk>
}

async function createSigningKeys (app: FastifyInstance) {
  const { usherDatabase: { db, read: { signingKey }, notifications }, usherOptions, log } = app
  const { schema, secret, signingKeySeconds } = usherOptions
  const tokenSeconds = longestLifeOf(usherOptions)
  // The one that signs last comes first.
  let keys: ReadonlyMap<string, SigningKey> = new Map()
  let tending = Promise.resolve()
  let [asked, askedAt] = [Promise.resolve(), -Infinity]
  // How many changes have been announced, and how many of them `keys` includes.
  let [announced, included] = [0, 0]
  // One after the other, so that what is known is never older than it was.
  const load = batchCalls(async () => [await read()], { inFlight: 1, patience: Infinity })
  const newest = () => keys.values().next().value!
  const hasSigned = ({ activeAt }: SigningKey, seconds: number) => performance.now() - activeAt >= seconds * 1000

  await start()
  notifications.listen(channelOf(schema, 'keys_changed'), onChange, refresh)
  // Not all nodes at once.
  const timer = setInterval(look, LOOK_MS * (0.5 + Math.random())).unref()
  app.addHook('onClose', async () => {
    clearInterval(timer)
    await tending
  })

  async function start (): Promise<void> {
    const rows = await read()
    const { problem } = newest()
    if (problem) throw problem
    if (secret === undefined || rows.every(({ privateKey }) => isEncrypted(privateKey))) return
    await replacePlainSigningKeys(db, secret)
    await read()
  }

  async function read (): Promise<SigningKeyRow[]> {
    const changes = announced
    const listed = await listSigningKeys(db)
    // Also where somebody has deleted all of them, so that no token is good any more.
    const rows = listed.length > 0 ? listed : await insertFirstSigningKey(db, secret)
    keys = new Map(rows.map((row, index) => [row.id, toKey(row, rows[index - 1])]))
    included = changes
    return rows
  }

  // What was opened once stays so: another node may have sealed it meanwhile, with a secret that is new.
  function toKey ({ activeIn, ...row }: SigningKeyRow, successor?: SigningKeyRow): SigningKey {
    const { id, publicKey } = row
    const now = performance.now()
    const expiresAt = successor ? now + (successor.activeIn + tokenSeconds) * 1000 : Infinity
    const key = { id, publicKey, activeAt: now + activeIn * 1000, expiresAt, jwk: toJwk(id, publicKey) }
    try {
      return { ...key, privateKey: keys.get(id)?.privateKey ?? openSigningKey(secret, { ...row, activeIn }) }
    } catch (problem) {
      return { ...key, problem: problem as Error }
    }
  }

  async function refresh (): Promise<void> {
    await load('keys')
    const { problem } = newest()
    if (problem) log.error({ err: problem }, 'the newest signing key cannot be used')
    tending = tending.then(tend).catch((err) => log.error({ err }, 'the signing keys could not be renewed'))
  }

  function onChange (): void {
    announced++
    look()
  }

  function look (): void {
    refresh().catch((err) => log.error({ err }, 'the signing keys could not be read'))
  }

  // What is due changes the table, of which all hear, this node too.
  async function tend (): Promise<void> {
    // A node that has not got the new secret yet leaves it to those that have.
    const due = !newest().problem && hasSigned(newest(), signingKeySeconds)
    if (due) await rotateSigningKey(db, { secret, tokenSeconds, ageSeconds: signingKeySeconds })
    const settled = [...keys.values()].findIndex((key) => hasSigned(key, tokenSeconds))
    if (settled >= 0 && settled < keys.size - 1) await deleteSupersededSigningKeys(db, tokenSeconds)
  }

  return {
    /** The key that signs: the newest whose time has come. Throws where no key can be opened. */
    current (): { id: string, privateKey: string } {
      const usable = [...keys.values()].filter((key) => key.privateKey !== undefined)
      // Before the time of all that can be opened, which a new secret may bring about, the next one signs.
      const key = usable.find((key) => hasSigned(key, 0)) ?? usable.at(-1)
      if (!key) throw new Error('no signing key can be opened', { cause: newest().problem })
      return { id: key.id, privateKey: key.privateKey! }
    },

    /** Returns the public key, in PEM, of a `kid`. A key is unknown as soon as every token that it signed has expired. */
    find (kid: string): string | undefined {
      const key = keys.get(kid)
      return key && isValid(key) ? key.publicKey : undefined
    },

    /**
     * Returns whether a key that is known has not been revoked. A node that has missed no notification knows; any other one asks
     * the database, for a client that may go. Rejects with `DatabaseUnavailable` if that is not possible.
     */
    isLive (kid: string, client?: Client): boolean | Promise<boolean> {
      if (notifications.connected && included === announced) return true
      return signingKey(kid, client).then((exists) => {
        if (!exists) look()
        return exists === true
      }, (cause) => { throw cause instanceof UsherError ? cause : new DatabaseUnavailable({ cause }) })
    },

    /**
     * Reads the keys for the sake of one that is unknown: once a second, however many ask. Throws
     * `DatabaseUnavailable` where that fails on a node that may have missed one.
     */
    async learn (): Promise<void> {
      if (performance.now() - askedAt >= PAUSE_MS) {
        askedAt = performance.now()
        asked = load('keys').then(() => {})
      }
      await asked.catch((cause) => { if (!notifications.connected) throw new DatabaseUnavailable({ cause }) })
    },

    /** The public keys (RFC 7517), those that do not sign yet included. */
    get keySet () { return { keys: [...keys.values()].filter(isValid).map(({ jwk }) => jwk) } },
  }
}

const isValid = ({ expiresAt }: SigningKey): boolean => performance.now() < expiresAt

function toJwk (id: string, publicKey: string) {
  const { kty, crv, x } = createPublicKey(publicKey).export({ format: 'jwk' })
  return { kty: kty!, crv: crv!, x: x!, kid: id, alg: 'EdDSA', use: 'sig' }
}

/** The keys of access tokens, as the database has them, known by heart and renewed by age (contract 4). */
export default fp(async function signingKeys (app) {
  app.decorate('usherSigningKeys', await createSigningKeys(app))
}, { name: 'usher-signing-keys', dependencies: ['usher-database'] })
