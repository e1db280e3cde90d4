import fp from 'fastify-plugin'
import { coreOf } from '../core.ts'
import { createApiKeyVerification } from '../sign-in/api-keys/verification.ts'
import { createActors, type Actors } from './actors.ts'
import { createClaims, type Claims } from './claims.ts'
import { createIdentity, type Identity } from './identity.ts'
import { createPolicy, type AccessPolicy } from './policy.ts'
import { createSecondFactorRule } from './second-factor-rule.ts'
import { createSessions, type Sessions } from './sessions.ts'
import { createSigningKeys, type SigningKeys } from './signing-keys.ts'
import { createTokens, type Tokens } from './tokens.ts'
import { createUserSessions, type UserSessions } from './user-sessions.ts'
import { createWriters } from './writers.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherAccess: Access
  }
}

/** Who sends a request, and what they may do and see. */
export interface Access extends Identity {
  readonly actors: Actors
  readonly claims: Claims
  readonly policy: AccessPolicy
  readonly sessions: Sessions
  readonly signingKeys: SigningKeys
  readonly tokens: Tokens
  readonly userSessions: UserSessions
}

/** Tokens, sessions, signing keys and the policy (contract 4, 11.1). */
export default fp(async function access (app) {
  const { usherUsers: { records: users }, usherAudit: audit } = app
  const core = coreOf(app)
  const { options } = core
  const actors = createActors(options.actorName)
  const signingKeys = await createSigningKeys(core)
  const writers = createWriters({ ...core, signingKeys })
  const tokens = await createTokens({ ...core, scope: app, signingKeys, writers })
  const claims = createClaims(core)
  const sessions = createSessions({ ...core, signingKeys })
  const policy = createPolicy(options)
  app.decorate('usherAccess', {
    ...createIdentity({
      ...core,
      actors,
      policy,
      tokens,
      apiKeys: createApiKeyVerification({ ...core, claims, sessions, writers }),
      writers,
      sessions,
      signingKeys,
      secondFactor: createSecondFactorRule(options),
    }),
    actors,
    claims,
    policy,
    sessions,
    signingKeys,
    tokens,
    userSessions: createUserSessions({ sessions, users, audit }),
  })
}, {
  name: 'usher-access',
  dependencies: ['usher-options', 'usher-telemetry', 'usher-database', 'usher-users', 'usher-audit'],
})
