import fastifyJwt from '@fastify/jwt'
import type { FastifyInstance } from 'fastify'
import { isUuid } from '../../db/driver/postgres.ts'
import type { WriterToken } from '../../db/access/live-tokens.ts'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import { hostClaims, noClaims, reservedClaims } from '../../schema/access/claims.ts'
import type { Actor, ActorOrganization } from '../../schema/options/policy.ts'
import { isSigningAlgorithm, type SigningAlgorithm } from '../../schema/options/signing-algorithm.ts'
import { namesOfRoles } from '../../schema/options/roles.ts'
import type { Role } from '../../schema/users/users.ts'
import type { Core } from '../core.ts'
import { isKnownRole } from './memberships.ts'
import type { SigningKeys } from './signing-keys.ts'
import { CLOCK_SKEW_SECONDS } from './token-lifetime.ts'
import type { Writers } from './writers.ts'

const REMEMBERED_TOKENS = 10_000
const TOKEN_CHARACTERS = 4096
// Three parts in base64url. The last one is a signature of 64 bytes (RFC 8032, RFC 7518 3.4), in its only valid
// encoding.
const SHAPE = /^[\w-]+\.[\w-]+\.[\w-]{85}[AQgw]$/

export type Tokens = Awaited<ReturnType<typeof createTokens>>

interface Dependencies extends Pick<Core, 'database' | 'options'> {
  writers: Writers
  /** Where @fastify/jwt is registered. */
  scope: FastifyInstance
  signingKeys: SigningKeys
}

interface Header { alg: SigningAlgorithm, typ: string, kid: string }
type NewActor = Pick<Actor, 'id' | 'role' | 'amr' | 'authTime'> & { sessionId: string } &
  Partial<Pick<Actor, 'claims' | 'organization'>>
interface Claims { sub: string, sid: string, role: Role, iat: number, exp: number, amr: string[], auth_time: number }
/** The further claims of a token for an organisation: its id, the role in it, and the id of the membership. */
interface OrganizationClaims { org: string, org_role: string, mid: string }

/**
 * Signs and verifies access tokens: JWTs with Ed25519 signatures, by keys that are stored in the database (contract 4).
 */
export async function createTokens (
  { scope, database: { clock }, signingKeys, writers, options }: Dependencies
) {
  const { issuer, accessTokenSeconds, claims: claimsOf, organizations, roles } = options
  const reserved = reservedClaims(options)
  const jwt = await registerJwt(scope)
  // A token may have another role, if another node has other options.
  const knownRoles: ReadonlySet<unknown> = new Set(namesOfRoles(roles))
  // A signature is verified once. The map's key is the whole token. Whether the session has ended is checked elsewhere,
  // on every request.
  const verified = new Map<string, WriterToken & { actor: Actor }>()

  function verify (token: string): Actor | Promise<Actor> {
    if (token.length > TOKEN_CHARACTERS) throw new InvalidToken()
    const known = verified.get(token)
    if (known && known.expires > clock.now() && signingKeys.find(known.kid)) return known.actor
    verified.delete(token)
    const { header, claims } = parse(token)
    if (signingKeys.find(header.kid)) return check(token, header, claims)
    // Another node may have created the key a moment ago.
    return signingKeys.learn().then(() => check(token, header, claims))
  }

  // Checks everything that can be checked without a key, before anything expensive is done.
  function parse (token: string): { header: Header, claims: Claims } {
    if (!SHAPE.test(token)) throw new InvalidToken()
    const { header, payload } =
      attempt(() => jwt.decode<{ header: object, payload: object }>(token, { complete: true })!)
    // Only the encoding that a node writes is accepted: it has no duplicate members, and nothing that another parser
    // may interpret in another way.
    if (!token.startsWith(`${encode(header)}.${encode(payload)}.`) || !isHeader(header) || !isClaims(payload) ||
      !knownRoles.has(payload.role)) {
      throw new InvalidToken()
    }
    // Nodes do not sign tokens with a longer lifetime, so such a token was signed with a stolen key.
    if (payload.exp - payload.iat > accessTokenSeconds) throw new InvalidToken()
    return { header, claims: payload }
  }

  function check (token: string, { alg, kid }: Header, payload: Claims): Actor {
    const { sub: id, sid: sessionId, role, iat, exp, amr, auth_time: authTime } = payload
    const key = signingKeys.find(kid)
    // The algorithm is that of the key, whatever a token says (RFC 8725 3.1).
    if (key?.algorithm !== alg) throw new InvalidToken()
    const clockTimestamp = clock.now()
    attempt(() => jwt.verify(token, { key: key.publicKey, algorithms: [key.algorithm], clockTimestamp }))
    const now = clockTimestamp / 1000
    // This also rejects a token that expires at this very moment, and one that was issued in the future.
    if (exp <= now || iat > now + CLOCK_SKEW_SECONDS) throw new InvalidToken()
    const claims = claimsOf ? hostClaims(payload, reserved) : noClaims
    const organization = organizations ? organizationOf(payload) : null
    if (organization && !isKnownRole(options, organization)) throw new InvalidToken()
    const entry = admit({ id, role, sessionId, amr, authTime, organization, claims }, { kid, exp })
    // If the map is full, the oldest entry is dropped.
    if (verified.size >= REMEMBERED_TOKENS) verified.delete(verified.keys().next().value!)
    verified.set(token, entry)
    return entry.actor
  }

  // Returns an actor whose writes are refused once the session has ended, the key is revoked or the time is over.
  function admit (
    { id, role, sessionId, amr, authTime, organization = null, claims = noClaims }: NewActor,
    { kid, exp }: { kid: string, exp: number }
  ): WriterToken & { actor: Actor } {
    const actor = Object.freeze({
      id,
      role,
      sessionId,
      keyId: null,
      actions: null,
      amr: Object.freeze([...amr]),
      authTime,
      organization: organization && Object.freeze(organization),
      claims,
    })
    const token = { id: sessionId, kid, expires: exp * 1000, membershipId: organization?.membershipId }
    writers.add(actor, token)
    return { ...token, actor }
  }

  // What is issued now expires no later than its session.
  function lifeOf ({ expiresAt }: { expiresAt?: Date | undefined }): { iat: number, exp: number } {
    const iat = Math.floor(clock.now() / 1000)
    return { iat, exp: Math.min(iat + accessTokenSeconds, Math.floor((expiresAt?.getTime() ?? Infinity) / 1000)) }
  }

  return {
    /** Returns a new access token, which expires no later than its session. */
    sign (
      { id, role, sessionId, amr, authTime, organization, claims }: NewActor,
      session: { expiresAt?: Date | undefined } = {}
    ): string {
      const { id: kid, algorithm, privateKey } = signingKeys.current()
      const { iat, exp } = lifeOf(session)
      const payload = { ...claims, sub: id, sid: sessionId, role, amr, auth_time: authTime, iat, exp }
      return jwt.sign({ ...payload, ...organization && claimsOfOrganization(organization) }, {
        key: privateKey, kid, algorithm,
      })
    },
    /** Returns the actor that a new access token would have, for pages, which need none. */
    actorOf: (user: NewActor, session: { expiresAt: Date }): Actor =>
      admit(user, { kid: signingKeys.current().id, exp: lifeOf(session).exp }).actor,
    /**
     * Returns the actor of an access token, whose session may have ended. Throws `InvalidToken`, and rejects with
     * `DatabaseUnavailable` if the node does not know the key and cannot read the keys.
     */
    verify,
    /** The lifetime of an access token in seconds. */
    lifetime: accessTokenSeconds,
    /** The public keys as a key set (RFC 7517). */
    get keySet () { return signingKeys.keySet },
  }

  // @fastify/jwt is registered in a separate scope, so that it does not conflict with the host's. Each call passes its
  // key. The `secret` and the algorithm are only there because the plugin does not start without them.
  async function registerJwt (app: FastifyInstance): Promise<FastifyInstance['jwt']> {
    const { id, algorithm, privateKey } = signingKeys.current()
    const registered = Promise.withResolvers<FastifyInstance['jwt']>()
    await app.register(async (scope) => {
      await scope.register(fastifyJwt, {
        secret: { private: privateKey, public: signingKeys.find(id)!.publicKey },
        decoratorName: 'usherJwt',
        jwtDecode: 'usherJwtDecode',
        jwtVerify: 'usherJwtVerify',
        jwtSign: 'usherJwtSign',
        sign: { algorithm, iss: issuer, aud: issuer },
        // RFC 8725: one algorithm for a key, one issuer, one audience. `isHeader` and `isClaims` check `typ` and the
        // other claims.
        verify: { algorithms: [algorithm], allowedIss: issuer, allowedAud: issuer, requiredClaims: ['iss', 'aud'] },
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

// A header has these three members only, and one type of token (RFC 8725 3.11). Members that name or carry a key (jku,
// jwk, x5u, x5c) or that must be understood (crit) make a token invalid.
function isHeader (header: object): header is Header {
  const { alg, typ, kid, ...rest } = header as Partial<Record<string, unknown>>
  return isSigningAlgorithm(alg) && typ === 'JWT' && typeof kid === 'string' && Object.keys(rest).length === 0
}

function isClaims (payload: object): payload is Claims {
  const { sub, sid, role, iat, exp, amr, auth_time: authTime } = payload as Partial<Record<string, unknown>>
  return [sub, sid].every((id) => typeof id === 'string' && isUuid(id)) && typeof role === 'string' &&
    Number.isSafeInteger(iat) && Number.isSafeInteger(exp) && Number.isSafeInteger(authTime) &&
    Array.isArray(amr) && amr.every((method) => typeof method === 'string')
}

const claimsOfOrganization = ({ id, role, membershipId }: ActorOrganization): OrganizationClaims =>
  ({ org: id, org_role: role, mid: membershipId })

// Returns the organisation that a token names. It names all three claims or none of them.
function organizationOf (payload: object): ActorOrganization | null {
  const { org: id, org_role: role, mid: membershipId } = payload as Partial<Record<keyof OrganizationClaims, unknown>>
  if (id === undefined && role === undefined && membershipId === undefined) return null
  const isComplete = typeof id === 'string' && typeof role === 'string' && typeof membershipId === 'string'
  if (!isComplete || !isUuid(id) || !isUuid(membershipId)) throw new InvalidToken()
  return { id, role, membershipId }
}
