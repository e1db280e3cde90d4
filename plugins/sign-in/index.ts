import fp from 'fastify-plugin'
import { coreOf } from '../core.ts'
import { createApiKeys, type ApiKeys } from './api-keys/index.ts'
import { createCredentials, type Credentials } from './credentials.ts'
import { createLogin, type LoginFunctions } from './login.ts'
import { createLoginMails, type LoginMails } from './mails.ts'
import { createPasskeys, type Passkeys } from './passkeys/passkeys.ts'
import { openBreachedPasswords } from './passwords/breached.ts'
import { createPasswords, type Passwords } from './passwords/passwords.ts'
import { createProviders, type Providers } from './providers/index.ts'
import { createSecondFactor, type SecondFactor } from './second-factor.ts'
import { createStepUp, type StepUp } from './step-up.ts'
import { createTotp, type Totp } from './totp/index.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherSignIn: SignIn
  }
}

/** The ways to sign in, and what all of them share. */
export interface SignIn {
  readonly apiKeys: ApiKeys
  readonly credentials: Credentials
  readonly login: LoginFunctions
  readonly loginMails: LoginMails
  readonly passkeys: Passkeys
  readonly passwords: Passwords
  readonly providers: Providers
  readonly secondFactor: SecondFactor
  readonly stepUp: StepUp
  readonly totp: Totp
}

/** Logins, and their passwords, passkeys, authenticator apps, providers, mails and API keys (contract 4, 16, 17). */
export default fp(async function signIn (app) {
  const {
    usherAccess: { claims, sessions, signingKeys, tokens }, usherAudit: audit, usherHooks: hooks,
    usherMailLinks: links, usherOutbox: { mails }, usherThrottle: throttle, usherUsers: { records: users },
  } = app
  const core = coreOf(app)
  const { undoLinks } = links
  const passwords = createPasswords(core, await openBreachedPasswords(core))
  const secondFactor = createSecondFactor(core)
  const login = createLogin({
    ...core, users, audit, hooks, sessions, tokens, claims, passwords, throttle, secondFactor,
  })
  const stepUp = createStepUp({ ...core, secondFactor })
  const credentials = createCredentials({ ...core, audit, hooks, sessions, throttle, undoLinks, users })
  app.decorate('usherSignIn', {
    apiKeys: createApiKeys({ ...core, audit, credentials, sessions, stepUp, users }),
    credentials,
    login,
    loginMails: createLoginMails({
      ...core, links, mails, audit, credentials, login, secondFactor, stepUp, throttle, users,
    }),
    passkeys: createPasskeys({ ...core, users, audit, credentials, login, sessions, signingKeys, stepUp, throttle }),
    passwords,
    providers: await createProviders({
      ...core, users, audit, credentials, login, secondFactor, sessions, signingKeys, stepUp, throttle,
    }),
    secondFactor,
    stepUp,
    totp: createTotp({ ...core, audit, credentials, login, sessions, stepUp, throttle, undoLinks }),
  })
}, {
  name: 'usher-sign-in',
  dependencies: [
    'usher-options', 'usher-telemetry', 'usher-database', 'usher-outbox', 'usher-hooks', 'usher-users', 'usher-audit',
    'usher-throttle', 'usher-access', 'usher-mail-links',
  ],
})
