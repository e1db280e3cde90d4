import { Type } from '@sinclair/typebox'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { keepConnection, reportError, translate } from '../../../plugins/http/errors.ts'
import { Login } from '../../../schema/sign-in/login.ts'
import { MailCode, RequestLoginMail } from '../../../schema/sign-in/mails.ts'
import { Challenge } from '../../../schema/sign-in/second-factor.ts'
import { RecoveryCode, TotpCode } from '../../../schema/sign-in/totp.ts'
import { RequestReset } from '../../../schema/sign-in/passwords/passwords.ts'
import { SignUp } from '../../../schema/mail-links/sign-ups.ts'
import { InvalidInput, OriginNotAllowed } from '../../../schema/http/errors.ts'
import { createAllowedOrigins } from '../../http/allowed-origins.ts'
import { createLogIn } from '../../sign-in/password-login.ts'
import { createLogInByMail } from '../../sign-in/mails.ts'
import type { RequestOf } from '../../http/route-types.ts'
import { createSessionCookie, createSignUpCookie } from '../../access/cookies.ts'
import { createReadSignUp, createSignUp } from '../../mail-links/sign-ups.ts'
import { readHostFields } from './host-fields.ts'

/** The maximum size of a form. */
export const FORM_BYTES = 16 * 1024

// The code of an app and a recovery code have a form each.
const SecondFactorForm = Type.Object({
  challenge: Challenge,
  code: Type.Optional(TotpCode),
  recoveryCode: Type.Optional(RecoveryCode),
})

// The cookie of the browser is not for the pages, so the page has the id.
const MailCodeForm = Type.Object({ code: MailCode, loginId: Type.String({ maxLength: 1024 }) })

/** What the form of a page does if the browser runs no scripts. */
export interface FormOperation {
  /** The schema of its fields. */
  body: object
  /** Runs before the body arrives. */
  onRequest?: (request: FastifyRequest) => Promise<void>
  /** Runs before the body is validated. */
  preValidation?: (request: FastifyRequest) => Promise<void>
  submit (request: FastifyRequest, reply: FastifyReply): Promise<unknown>
}

export type FormOperations = Awaited<ReturnType<typeof createFormOperations>>

/**
 * Returns what the forms of the pages do: the operations of the API, so limits, checks and the account log are the
 * same.
 */
export async function createFormOperations (app: FastifyInstance) {
  const { usherAccess: { callerOf }, usherSignIn: { login, totp }, usherMailLinks: { passwordLinks } } = app
  const { userFields } = app.usherOptions
  const cookies = await createSessionCookie(app)
  const { rejectFlood, logIn } = createLogIn(app, cookies)
  const byMail = await createLogInByMail(app)
  const signUp = createSignUp(app, await createSignUpCookie(app))
  const readSignUp = createReadSignUp(app)

  return {
    logIn: {
      body: Login,
      onRequest: rejectFlood,
      submit: (request: RequestOf<{ body: typeof Login }>, reply) => logIn(request, reply, request.body),
    },
    secondFactor: {
      body: SecondFactorForm,
      onRequest: rejectFlood,
      async submit (request: RequestOf<{ body: typeof SecondFactorForm }>, reply) {
        const { challenge, code, recoveryCode } = request.body
        if ((code === undefined) === (recoveryCode === undefined)) throw new InvalidInput('code is required')
        const given = code === undefined ? { recoveryCode: recoveryCode! } : { code }
        const caller = callerOf(request, { actor: null })
        const replaced = cookies.serves(request) ? cookies.read(request) : undefined
        const loggedIn = await login.withSecondFactor(caller, { challenge, replaced }, (userId) =>
          totp.prove(caller, userId, given))
        cookies.set(reply, loggedIn.cookie, loggedIn.expiresAt)
      },
    },
    requestLoginMail: {
      body: RequestLoginMail,
      submit: (request: RequestOf<{ body: typeof RequestLoginMail }>, reply) =>
        byMail.request(request, reply, request.body),
    },
    logInByCode: {
      body: MailCodeForm,
      onRequest: rejectFlood,
      submit: (request: RequestOf<{ body: typeof MailCodeForm }>, reply) => byMail.logIn(request, reply, request.body),
    },
    requestReset: {
      body: RequestReset,
      submit: (request: RequestOf<{ body: typeof RequestReset }>) =>
        passwordLinks.request(callerOf(request), request.body.email),
    },
    signUp: {
      body: SignUp,
      async preValidation (request) {
        await readSignUp(request)
        const { body } = request
        if (typeof body === 'object' && body !== null) request.body = readHostFields(userFields, body as Record<string, unknown>)
      },
      submit: (request: RequestOf<{ body: typeof SignUp }>, reply) => signUp(request, reply, request.body),
    },
  } satisfies Record<string, FormOperation>
}

/**
 * Returns an `onRequest` hook that accepts only forms of Usher's own pages and of allowed origins. Otherwise any site
 * could log its visitors in to an account of its own. Unlike programs, browsers say where a form comes from.
 */
export function createOriginCheck (app: FastifyInstance) {
  const { serveCookie } = createAllowedOrigins(app)
  return async (request: FastifyRequest): Promise<void> => {
    const { origin, 'sec-fetch-site': site } = request.headers
    const isOwn = site === 'same-origin' || (Boolean(origin) && origin !== 'null' && serveCookie(request))
    if (!isOwn) throw new OriginNotAllowed()
  }
}

export interface FormOptions {
  /** The path of the page. */
  path: string
  operation: FormOperation
  checkOrigin: (request: FastifyRequest) => Promise<void>
  /** Returns where the browser goes after success. */
  nextOf: (request: FastifyRequest) => string
  /** Returns the page with the result, if success does not lead elsewhere. */
  renderSuccess?: (request: FastifyRequest, result: unknown) => string
  /** Returns the page with a failure. */
  renderFailure: (request: FastifyRequest, error: Error & { code?: string, errors?: readonly string[] }) => string
  /** Returns the headers of the page. */
  headersOf: (request: FastifyRequest, reply: FastifyReply) => Record<string, string>
}

/**
 * Adds the route to which the form of a page is sent if the browser runs no scripts. Success usually leads to another
 * page, and a failure to the same one.
 */
export function addForm (
  app: FastifyInstance,
  { path, operation, checkOrigin, nextOf, renderSuccess, renderFailure, headersOf }: FormOptions
): void {
  const { body, onRequest, preValidation, submit } = operation
  app.route({
    method: 'POST',
    url: path,
    schema: { hide: true, body },
    onRequest: [checkOrigin, ...onRequest ? [onRequest] : []],
    preValidation: preValidation ? [preValidation] : [],
    async handler (request, reply) {
      const result = await submit(request, reply)
      if (renderSuccess) {
        reply.headers({ ...headersOf(request, reply), 'cache-control': 'no-store' }).type('text/html; charset=utf-8')
        return reply.send(renderSuccess(request, result))
      }
      // The result, which may have a token, is not sent.
      return reply.code(303).headers({ location: nextOf(request), 'cache-control': 'no-store' }).send()
    },
    errorHandler (thrown, request, reply) {
      const error = translate(thrown)
      keepConnection(error, reply)
      reportError(error, request, reply)
      reply.headers({ ...headersOf(request, reply), 'cache-control': 'no-store' })
        .type('text/html; charset=utf-8').send(renderFailure(request, error))
    },
  })
}
