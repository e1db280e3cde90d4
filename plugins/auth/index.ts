import fp from 'fastify-plugin'
import { coreOf } from '../core.ts'
import { createActors, type Actors } from './actors.ts'
import { createApiKeys, type ApiKeys } from './api-keys/index.ts'
import { createApiKeyVerification } from './api-keys/verification.ts'
import { createCredentials, type Credentials } from './credentials.ts'
import { createClaims, type Claims } from './claims.ts'
import { createIdentity, type Identity } from './identity.ts'
import { createEmailLinks, type EmailLinks } from './links/email-links.ts'
import { createLoginMails, type LoginMails } from './links/login-mails.ts'
import { createMailLinks } from './links/mail-link.ts'
import { createPasswordLinks, type PasswordLinks } from './links/password-links.ts'
import { createSignUps, type SignUps } from './links/sign-ups.ts'
import { createUndoLinks, type UndoLinks } from './links/undo-links.ts'
import { createLogin, type LoginFunctions } from './login.ts'
import { createPasskeys, type Passkeys } from './passkeys/passkeys.ts'
import { createPasswords, type Passwords } from './passwords.ts'
import { createProviders, type Providers } from './providers/index.ts'
import { createPolicy, type AccessPolicy } from './policy.ts'
import { createSecondFactor, type SecondFactor } from './second-factor.ts'
import { createSessions, type Sessions } from './sessions.ts'
import { createSigningKeys, type SigningKeys } from './signing-keys.ts'
import { createStepUp, type StepUp } from './step-up.ts'
import { createThrottle, type Throttle } from './throttle/throttle.ts'
import { createTokens, type Tokens } from './tokens.ts'
import { createTotp, type Totp } from './totp/index.ts'
import { createUserSessions, type UserSessions } from './user-sessions.ts'
import { createWriters } from './writers.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherAuth: Auth
  }
}

/** Who somebody is and may do and see what: sessions, tokens, passwords, the links of mails, limits and the policy. */
export interface Auth extends Identity {
  readonly actors: Actors
  readonly apiKeys: ApiKeys
  readonly claims: Claims
  readonly credentials: Credentials
  readonly emailLinks: EmailLinks
  readonly login: LoginFunctions
  readonly loginMails: LoginMails
  readonly passkeys: Passkeys
  readonly passwordLinks: PasswordLinks
  readonly passwords: Passwords
  readonly policy: AccessPolicy
  readonly providers: Providers
  readonly secondFactor: SecondFactor
  readonly sessions: Sessions
  readonly signingKeys: SigningKeys
  readonly signUps: SignUps
  readonly stepUp: StepUp
  readonly throttle: Throttle
  readonly tokens: Tokens
  readonly totp: Totp
  readonly undoLinks: UndoLinks
  readonly userSessions: UserSessions
}

/** Accounts from the outside: logins, sessions, tokens and permissions (contract 4, 11). */
export default fp(async function auth (app) {
  const { usherOutbox: { mails }, usherHooks: hooks, usherUsers: users, usherAudit: audit } = app
  const core = coreOf(app)
  const { options } = core
  const actors = createActors(options.actorName)
  const throttle = createThrottle(core)
  const signingKeys = await createSigningKeys(core)
  const writers = createWriters({ ...core, signingKeys })
  const tokens = await createTokens({ ...core, scope: app, signingKeys, writers })
  const claims = createClaims(core)
  const sessions = createSessions({ ...core, signingKeys })
  const passwords = createPasswords(core)
  const links = createMailLinks(app, options)
  const policy = createPolicy(options)
  const secondFactor = createSecondFactor(core)
  const identity = createIdentity({
    ...core,
    actors,
    policy,
    tokens,
    apiKeys: createApiKeyVerification({ ...core, claims, sessions, writers }),
    writers,
    sessions,
    signingKeys,
    secondFactor,
  })
  const login = createLogin({
    ...core, users, audit, hooks, sessions, tokens, claims, passwords, throttle, secondFactor,
  })
  const stepUp = createStepUp({ ...core, secondFactor })
  const undoLinks = createUndoLinks({ ...core, links, mails })
  const credentials = createCredentials({ ...core, audit, hooks, sessions, throttle, undoLinks, users })
  app.decorate('usherAuth', {
    ...identity,
    actors,
    apiKeys: createApiKeys({ ...core, audit, credentials, sessions, stepUp, users }),
    claims,
    credentials,
    emailLinks: createEmailLinks({ ...core, links, mails }),
    login,
    loginMails: createLoginMails({
      ...core, links, mails, audit, credentials, login, secondFactor, stepUp, throttle, users,
    }),
    passkeys: createPasskeys({ ...core, users, audit, credentials, login, sessions, signingKeys, stepUp, throttle }),
    passwordLinks: createPasswordLinks({ ...core, links, mails, audit, throttle }),
    passwords,
    policy,
    providers: await createProviders({
      ...core, users, audit, credentials, login, secondFactor, sessions, signingKeys, stepUp, throttle,
    }),
    secondFactor,
    sessions,
    signingKeys,
    signUps: createSignUps({ ...core, links, mails }),
    stepUp,
    throttle,
    tokens,
    totp: createTotp({ ...core, audit, credentials, login, sessions, throttle, undoLinks }),
    undoLinks,
    userSessions: createUserSessions({ sessions, users, audit }),
  })
}, {
  name: 'usher-auth',
  dependencies: [
    'usher-options', 'usher-telemetry', 'usher-database', 'usher-outbox', 'usher-hooks', 'usher-users', 'usher-audit',
  ],
})
