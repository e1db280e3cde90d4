import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { findAccount } from '../../db/mail-links/password-links.ts'
import type { UserRow } from '../../db/tables/index.ts'
import { actorWithoutSession } from '../../plugins/access/actors.ts'
import type { Caller } from '../../plugins/access/caller.ts'
import { forbidStoring } from '../../plugins/http/requests.ts'
import { ConfirmationErrors } from '../../schema/sign-in/passwords/passwords.ts'
import { CheckSignUp, ConfirmSignUp, SignUp, SignUpCheck, SignUpReply } from '../../schema/mail-links/sign-ups.ts'
import { examples, FAILURES, failures, HEADERS } from '../../schema/http/reply.ts'
import type { Options } from '../../schema/options/options.ts'
import { User, EmailTaken } from '../../schema/users/users.ts'
import { withoutProtected } from '../../schema/users/user-fields.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'
import { createSessionCookie, createSignUpCookie, type SignUpCookie } from '../access/cookies.ts'

const tags = ['auth']
const schemas = {
  signUp: {
    tags,
    operationId: 'signUp',
    summary: 'Sign up: request an e-mail with a link that creates the user',
    body: SignUp,
    [HEADERS]: { 202: ['Set-Cookie'] },
    response: { 202: SignUpReply, ...failures(400, 413, 415, 429) },
  },
  check: {
    tags,
    operationId: 'checkSignUp',
    summary: 'Check whether the token of the link is valid, without using it, whose it is, and whether it needs a password',
    body: CheckSignUp,
    [HEADERS]: { 200: ['Password-Required'] },
    response: { 200: SignUpCheck, ...failures(400, 413, 415) },
  },
  confirm: {
    tags,
    operationId: 'confirmSignUp',
    [FAILURES]: examples(new EmailTaken()),
    summary: 'Create the user of a sign-up with the token of the link',
    body: ConfirmSignUp,
    [HEADERS]: { 201: ['Set-Cookie'] },
    response: { 201: User, ...failures(409, 413, 415), 400: ConfirmationErrors },
  },
}

/** Returns whether a link in a mail creates users: where anyone may sign up, or by a provider (contract 11.2, 16.5). */
export const confirmsSignUps = ({ signUp, providers, mailer }: Pick<Options, 'signUp' | 'providers' | 'mailer'>): boolean =>
  signUp || (mailer !== undefined && providers.some(({ signUp }) => signUp))

/** Adds the routes for signing up, if the option `signUp` is set, and those of its links (contract 11.2). */
const signUpRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherOptions, usherDatabase: { db }, usherAccess: { callerOf, policy }, usherSignIn: { login },
    usherMailLinks: { signUps }, usherAccounts: { newUsers },
  } = app
  if (!confirmsSignUps(usherOptions)) return
  const cookie = await createSignUpCookie(app)
  const sessionCookies = await createSessionCookie(app)
  const signUp = createSignUp(app, cookie)
  forbidStoring(app)

  if (usherOptions.signUp) {
    app.post('/auth/sign-up', { schema: schemas.signUp, preValidation: createReadSignUp(app) }, onSignUp)
  }
  app.post('/auth/sign-up/check', { schema: schemas.check }, onCheck)
  app.post('/auth/sign-up/confirm', { schema: schemas.confirm, preValidation: createReadSignUp(app) }, onConfirm)

  async function onSignUp (request: RequestOf<typeof schemas.signUp>, reply: ReplyOf<typeof schemas.signUp>) {
    const signUpId = await signUp(request, reply, request.body)
    const message = 'A mail to this address says how to go on'
    return reply.code(202).send({ message, ...request.body.cookie === false && { signUpId } })
  }

  async function onCheck (request: RequestOf<typeof schemas.check>, reply: ReplyOf<typeof schemas.check>) {
    const { token, signUpId = cookie.read(request) } = request.body
    const { email, needsPassword } = await signUps.open(token, signUpId)
    if (needsPassword) reply.header('password-required', 'true')
    return reply.send({ email })
  }

  async function onConfirm (request: RequestOf<typeof schemas.confirm>, reply: ReplyOf<typeof schemas.confirm>) {
    const { token, signUpId = cookie.read(request), logIn: logsIn, ...given } = request.body
    const caller = callerOf(request, { actor: null, via: 'sign-up-confirmation' })
    const user = await newUsers.confirmSignUp(caller, await signUps.open(token, signUpId), given)
    const etag = policy.viewOf(actorWithoutSession(user), user.id).tagOf(user)
    const location = `${usherOptions.publicPath}/api/users/${user.id}`
    cookie.clear(reply)
    if (logsIn) await logIn(request, reply, caller, user)
    return reply.code(201).headers({ location, etag }).send(policy.showOwn(user))
  }

  // The client has proved the mailbox, and the password: it is its own, or was just given. So this is a login by that
  // password. The user is created in any case, whatever a hook of the host says of the login.
  async function logIn (request: FastifyRequest, reply: FastifyReply, caller: Caller, user: UserRow): Promise<void> {
    // A page of another origin must not log a browser in.
    if (!sessionCookies.serves(request)) return
    const { passwordHash } = await findAccount(db, user.id) ?? {}
    // Whoever signs up by a provider has none, and logs in there.
    if (!passwordHash) return
    try {
      const proof = { amr: ['pwd'], passwordHash, replaced: sessionCookies.read(request) }
      const { cookie, expiresAt } = await login.start(caller, user, proof)
      sessionCookies.set(reply, cookie, expiresAt)
    } catch (error) {
      request.log.warn({ err: error as Error, userId: user.id }, 'The user of a sign-up was created, but not logged in')
    }
  }
}

/** Returns the sign-up, which the API and the page share. It sets the cookie, and returns what proves the same. */
export function createSignUp (
  { usherAccess: { callerOf }, usherAccounts: { newUsers } }: FastifyInstance, cookie: SignUpCookie
) {
  return async (request: FastifyRequest, reply: FastifyReply, given: SignUp): Promise<string> => {
    const signUpId = await newUsers.signUp(callerOf(request, { actor: null, via: 'sign-up' }), given)
    if (given.cookie !== false) cookie.set(reply, signUpId)
    return signUpId
  }
}

/**
 * Returns a `preValidation` hook that removes the fields that users may not write. It runs before the validation,
 * because the values of fields that are ignored do not matter.
 */
export function createReadSignUp ({ usherOptions: { userFields } }: FastifyInstance) {
  return async (request: FastifyRequest): Promise<void> => {
    const { body } = request
    if (typeof body !== 'object' || body === null || Array.isArray(body)) return
    request.body = withoutProtected(userFields, body, 'owner')
  }
}

export default signUpRoutes
