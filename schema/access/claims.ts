import { problemOfJson } from '../strings/json.ts'
import type { Register } from '../options/register.ts'
import type { UsherUser } from '../users/users.ts'

/** The maximum size of the host's claims as JSON. */
const BYTES = 1024

// The claims that Usher sets or that have a meaning for whoever verifies a token (RFC 7519 4.1), and what is not a name
// in JavaScript.
const RESERVED = new Set([
  'iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'sid', 'role', 'amr', 'auth_time', 'cnf', 'azp', '__proto__',
])

// Those of a token for an organisation, with the option `organizations` (contract 19.3).
const OF_ORGANIZATIONS = ['org', 'org_role', 'mid']
const RESERVED_WITH_ORGANIZATIONS = new Set([...RESERVED, ...OF_ORGANIZATIONS])

/** Returns the names that the host's claims cannot have. */
export const reservedClaims = ({ organizations }: { organizations?: object | undefined }): ReadonlySet<string> =>
  organizations ? RESERVED_WITH_ORGANIZATIONS : RESERVED

/** The claims that the host adds to access tokens: see `Register`. */
export type TokenClaims = Register extends { claims: infer Claims extends object } ? Claims : Record<string, unknown>

/** The host's claims of an actor. A token that was signed before the option `claims` was set has none of them. */
export type ActorClaims = Readonly<Partial<TokenClaims>>

export type ClaimsOf = (user: UsherUser) => TokenClaims | Promise<TokenClaims>

/** The claims of tokens without any of the host. */
export const noClaims: ActorClaims = Object.freeze({})

/**
 * Returns a copy of what the option `claims` has returned, without members that are undefined. Throws an `Error` that
 * says what is wrong with it.
 */
export function checkClaims (given: unknown, reservedNames: ReadonlySet<string>): ActorClaims {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new Error('usher: claims must return an object')
  }
  const entries = Object.entries(given).filter(([, value]) => value !== undefined)
  const reserved = entries.find(([name]) => reservedNames.has(name))
  if (reserved) throw new Error(`usher: claims must not return ${reserved[0]}, which is reserved`)
  const claims = Object.fromEntries(entries)
  const problem = problemOfJson(claims, BYTES)
  if (problem) throw new Error(`usher: what claims returns ${problem}`)
  return freeze(JSON.parse(JSON.stringify(claims))) as ActorClaims
}

/** Returns the host's claims among those of a token. */
export function hostClaims (payload: object, reservedNames: ReadonlySet<string>): ActorClaims {
  const entries = Object.entries(payload).filter(([name]) => !reservedNames.has(name))
  return entries.length === 0 ? noClaims : freeze(Object.fromEntries(entries)) as ActorClaims
}

function freeze<Value> (value: Value): Value {
  if (typeof value !== 'object' || value === null) return value
  for (const member of Object.values(value)) freeze(member)
  return Object.freeze(value)
}
