import { createHash, generateKeyPairSync, createPublicKey } from 'node:crypto'
import fastifyJwt from '@fastify/jwt'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { insertFirstSigningKey, listSigningKeys, type SigningKeyRow } from '../db/signing-keys.ts'
import type { Database } from '../db/tables.ts'
import { InvalidToken } from '../schema/errors.ts'
import type { Actor } from '../schema/policy.ts'
import type { Role } from '../schema/user.ts'

const REMEMBERED_TOKENS = 10_000
/** How far the clocks of two nodes may be apart. */
export const CLOCK_SKEW_SECONDS = 60

interface Claims { sub: string, sid: string, role: Role, iat: number, exp: number }

declare module 'fastify' {
  interface FastifyInstance {
    usherTokens: Awaited<ReturnType<typeof createTokens>>
  }
}

async function createTokens (app: FastifyInstance) {
  const { usherDatabase: { db }, usherOptions: { issuer, accessTokenSeconds } } = app
  const keys = new Map((await findKeys(db)).map((key) => [key.id, key]))
  const [newest] = keys.values() as Iterable<SigningKeyRow> as [SigningKeyRow]
  const jwt = await registerJwt(app, newest)
  // A signature is checked once. The key of the map is the whole token; whether its session still lives is
  // asked on every request, elsewhere.
  const verified = new Map<string, { actor: Actor, expires: number }>()

  function verify (token: string): Actor {
    const known = verified.get(token)
    if (known && known.expires > Date.now()) return known.actor
    verified.delete(token)
    const { sub: id, role, sid: sessionId, exp } = check(token)
    const actor = Object.freeze({ id, role, sessionId })
    // Full: the oldest goes.
    if (verified.size >= REMEMBERED_TOKENS) verified.delete(verified.keys().next().value!)
    verified.set(token, { actor, expires: exp * 1000 })
    return actor
  }

  function check (token: string): Claims {
    try {
      const { header } = jwt.decode<{ header: { kid: string } }>(token, { complete: true })!
      const claims = jwt.verify<Claims>(token, { key: keys.get(header.kid)!.publicKey })
      const now = Date.now() / 1000
      if (claims.exp <= now || claims.iat > now + CLOCK_SKEW_SECONDS) throw new Error('expired this very moment, or issued in the future')
      return claims
    } catch (cause) {
      throw new InvalidToken({ cause: cause as Error })
    }
  }

  return {
    /** Signs an access token. */
    sign: ({ id, role, sessionId }: Actor): string => jwt.sign({ sub: id, sid: sessionId, role }),
    /** The actor of an access token; its session may have ended. Throws `InvalidToken`. */
    verify,
    /** Seconds that an access token lives. */
    lifetime: accessTokenSeconds,
    /** The public keys (RFC 7517). */
    keySet: { keys: [...keys.values()].map(toJwk) },
  }

  // In a scope of its own, so that nothing of @fastify/jwt meets the host's.
  async function registerJwt (app: FastifyInstance, { id, privateKey, publicKey }: SigningKeyRow): Promise<FastifyInstance['jwt']> {
    const registered = Promise.withResolvers<FastifyInstance['jwt']>()
    await app.register(async (scope) => {
      await scope.register(fastifyJwt, {
        secret: { private: privateKey, public: publicKey },
        decoratorName: 'usherJwt',
        jwtDecode: 'usherJwtDecode',
        jwtVerify: 'usherJwtVerify',
        jwtSign: 'usherJwtSign',
        sign: { algorithm: 'EdDSA', kid: id, iss: issuer, aud: issuer, expiresIn: `${accessTokenSeconds}s` },
        // RFC 8725: one algorithm, one issuer, one audience, and every claim that is relied upon.
        verify: { algorithms: ['EdDSA'], allowedIss: issuer, allowedAud: issuer, requiredClaims: ['iss', 'aud', 'sub', 'sid', 'role', 'iat', 'exp'] },
      })
      registered.resolve(scope.jwt)
    })
    return registered.promise
  }
}

// Newest first. The first node of all makes one.
async function findKeys (db: Database): Promise<SigningKeyRow[]> {
  const keys = await listSigningKeys(db)
  return keys.length > 0 ? keys : insertFirstSigningKey(db, createSigningKey())
}

function createSigningKey (): SigningKeyRow {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519', {
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  const { crv, kty, x } = createPublicKey(publicKey).export({ format: 'jwk' })
  // RFC 7638, RFC 8037: the members in this order.
  const id = createHash('sha256').update(JSON.stringify({ crv, kty, x })).digest('base64url')
  return { id, privateKey, publicKey }
}

function toJwk ({ id, publicKey }: SigningKeyRow) {
  const { kty, crv, x } = createPublicKey(publicKey).export({ format: 'jwk' })
  return { kty: kty!, crv: crv!, x: x!, kid: id, alg: 'EdDSA', use: 'sig' }
}

/** Access tokens: JWTs signed with Ed25519 by keys that live in the database (contract 4). */
export default fp(async function tokens (app) {
  app.decorate('usherTokens', await createTokens(app))
}, { name: 'usher-tokens', dependencies: ['usher-database'] })
