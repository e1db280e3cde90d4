import fastifyJwt from '@fastify/jwt'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import type { Client } from '../../db/batching.ts'
import { isUuid } from '../../db/postgres.ts'
import { InvalidToken } from '../../schema/errors.ts'
import type { Actor } from '../../schema/policy.ts'
import { roles, type Role } from '../../schema/user.ts'

// How far the clock of a database server may be from that of the one which takes over from it; nodes go by the database's.
const CLOCK_SKEW_SECONDS = 60

const REMEMBERED_TOKENS = 10_000
const TOKEN_OCTETS = 4096
// Three parts in base64url; the last one the 64 octets of an Ed25519 signature, in the only way to write them.
const SHAPE = /^[\w-]+\.[\w-]+\.[\w-]{85}[AQgw]$/

/** How long a token may be about: one lives a little longer after a failover to a server whose clock is behind. */
export function longestLifeOf ({ accessTokenSeconds }: { accessTokenSeconds: number }): number {
  return accessTokenSeconds + CLOCK_SKEW_SECONDS
}

interface Header { alg: string, typ: string, kid: string }
interface Claims { sub: string, sid: string, role: Role, iat: number, exp: number }

declare module 'fastify' {
  interface FastifyInstance {
    usherTokens: Awaited<ReturnType<typeof createTokens>>
  }
}

async function createTokens (app: FastifyInstance) {
  const { usherDatabase: { clock }, usherSigningKeys: signingKeys, usherOptions: { issuer, accessTokenSeconds } } = app
  const jwt = await registerJwt(app)
  // A signature is checked once. The key of the map is the whole token; whether its session still lives is
  // asked on every request, elsewhere.
  const verified = new Map<string, { actor: Actor, kid: string, expires: number }>()
  // The same by its actor, to check a token again without its text.
  const tokenOfActor = new WeakMap<Actor, { kid: string, expires: number }>()

  function verify (token: string): Actor | Promise<Actor> {
    if (token.length > TOKEN_OCTETS) throw new InvalidToken()
    const known = verified.get(token)
    if (known && known.expires > clock.now() && signingKeys.find(known.kid)) return known.actor
    verified.delete(token)
    const { kid, claims } = parse(token)
    if (signingKeys.find(kid)) return check(token, kid, claims)
    // Another node may have made it this very moment.
    return signingKeys.learn().then(() => check(token, kid, claims))
  }

  // All that needs no key, before anything is done for it.
  function parse (token: string): { kid: string, claims: Claims } {
    if (!SHAPE.test(token)) throw new InvalidToken()
    const { header, payload } = attempt(() => jwt.decode<{ header: object, payload: object }>(token, { complete: true })!)
    // As it was written by a node: with no member twice, and nothing that somebody else may read in another way.
    if (!token.startsWith(`${encode(header)}.${encode(payload)}.`) || !isHeader(header) || !isClaims(payload)) throw new InvalidToken()
    // Nobody but the holder of a stolen key claims to live longer than nodes let a token live.
    if (payload.exp - payload.iat > accessTokenSeconds) throw new InvalidToken()
    return { kid: header.kid, claims: payload }
  }

  function check (token: string, kid: string, { sub: id, sid: sessionId, role, iat, exp }: Claims): Actor {
    const key = signingKeys.find(kid)
    if (!key) throw new InvalidToken()
    const clockTimestamp = clock.now()
    attempt(() => jwt.verify(token, { key, clockTimestamp }))
    const now = clockTimestamp / 1000
    // Expired this very moment, or issued in the future.
    if (exp <= now || iat > now + CLOCK_SKEW_SECONDS) throw new InvalidToken()
    const actor = Object.freeze({ id, role, sessionId })
    // Full: the oldest goes.
    if (verified.size >= REMEMBERED_TOKENS) verified.delete(verified.keys().next().value!)
    const entry = { actor, kid, expires: exp * 1000 }
    verified.set(token, entry)
    tokenOfActor.set(actor, entry)
    return actor
  }

  return {
    /** Signs an access token, which lives no longer than its session. */
    sign ({ id, role, sessionId }: Actor, { expiresAt }: { expiresAt?: Date | undefined } = {}): string {
      const { id: kid, privateKey } = signingKeys.current()
      const iat = Math.floor(clock.now() / 1000)
      const exp = Math.min(iat + accessTokenSeconds, Math.floor((expiresAt?.getTime() ?? Infinity) / 1000))
      return jwt.sign({ sub: id, sid: sessionId, role, iat, exp }, { key: privateKey, kid })
    },
    /**
     * The actor of an access token; its session may have ended. Throws `InvalidToken`, and rejects with
     * `DatabaseUnavailable` where it cannot be known whether its key is one of ours.
     */
    verify,
    /** Returns whether an actor came from a token of this mount, rather than of another one in the same app. */
    isOurs: (actor: Actor): boolean => tokenOfActor.has(actor),
    /** Returns whether the token that an actor came from is still valid; its session may have ended. */
    isValid (actor: Actor): boolean {
      const token = tokenOfActor.get(actor)
      return token !== undefined && token.expires > clock.now() && signingKeys.find(token.kid) !== undefined
    },
    /** Returns whether the key that signed an actor's token has not been revoked. Rejects with `DatabaseUnavailable`. */
    isKeyLive: (actor: Actor, client?: Client): boolean | Promise<boolean> => signingKeys.isLive(tokenOfActor.get(actor)!.kid, client),
    /** Returns the milliseconds until a token expires that was verified. */
    timeLeftOf: (token: string): number => parse(token).claims.exp * 1000 - clock.now(),
    /** Seconds that an access token lives. */
    lifetime: accessTokenSeconds,
    /** The public keys (RFC 7517). */
    get keySet () { return signingKeys.keySet },
  }

  // In a scope of its own, so that nothing of @fastify/jwt meets the host's. What it signs and verifies with is
  // told each time, by `key`; it does not start without a `secret`.
  async function registerJwt (app: FastifyInstance): Promise<FastifyInstance['jwt']> {
    const { id, privateKey } = signingKeys.current()
    const registered = Promise.withResolvers<FastifyInstance['jwt']>()
    await app.register(async (scope) => {
      await scope.register(fastifyJwt, {
        secret: { private: privateKey, public: signingKeys.find(id)! },
        decoratorName: 'usherJwt',
        jwtDecode: 'usherJwtDecode',
        jwtVerify: 'usherJwtVerify',
        jwtSign: 'usherJwtSign',
        sign: { algorithm: 'EdDSA', iss: issuer, aud: issuer },
        // RFC 8725: one algorithm, one issuer, one audience. Of `typ` and the other claims see `isHeader`, `isClaims`.
        verify: { algorithms: ['EdDSA'], allowedIss: issuer, allowedAud: issuer, requiredClaims: ['iss', 'aud'] },
      })
      registered.resolve(scope.jwt)
    })
    return registered.promise
  }
}

function attempt<Result> (run: () => Result): Result {
  try {
    return run()
  } catch (cause) {
    throw new InvalidToken({ cause: cause as Error })
  }
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

// Nothing but the three, and one kind of token (RFC 8725 3.11): what names or carries a key (jku, jwk, x5u, x5c), or asks to be understood (crit), is not ours.
function isHeader (header: object): header is Header {
  const { alg, typ, kid, ...rest } = header as Partial<Record<string, unknown>>
  return alg === 'EdDSA' && typ === 'JWT' && typeof kid === 'string' && Object.keys(rest).length === 0
}

function isClaims (payload: object): payload is Claims {
  const { sub, sid, role, iat, exp } = payload as Partial<Record<string, unknown>>
  return [sub, sid].every((id) => typeof id === 'string' && isUuid(id)) && roles.includes(role as Role) &&
    Number.isSafeInteger(iat) && Number.isSafeInteger(exp)
}

/** Access tokens: JWTs signed with Ed25519 by keys that live in the database (contract 4). */
export default fp(async function tokens (app) {
  app.decorate('usherTokens', await createTokens(app))
}, { name: 'usher-tokens', dependencies: ['usher-signing-keys'] })
