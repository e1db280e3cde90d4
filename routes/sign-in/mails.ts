import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { LoggedIn } from '../../plugins/sign-in/login.ts'
import { forbidStoring } from '../../plugins/http/requests.ts'
import { LoginReply } from '../../schema/sign-in/login.ts'
import {
  CheckLoginMail, ConfirmLoginMail, EmailNotVerified, LoginMailAccount, LoginMailReply, RequestLoginMail,
  StepUpMailReply,
} from '../../schema/sign-in/mails.ts'
import { LoginFailure } from '../../schema/sign-in/second-factor.ts'
import { InvalidInput } from '../../schema/http/errors.ts'
import { examples, FAILURES, failures, HEADERS } from '../../schema/http/reply.ts'
import { createLogIn } from './password-login.ts'
import { createLoginMailCookie, createSessionCookie } from '../access/cookies.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'

const tags = ['auth']
const schemas = {
  request: {
    tags,
    operationId: 'requestLoginMail',
    summary: 'Request an e-mail with a link and a code to log in',
    body: RequestLoginMail,
    [HEADERS]: { 202: ['Set-Cookie'] },
    response: { 202: LoginMailReply, ...failures(400, 413, 415, 429) },
  },
  check: {
    tags,
    operationId: 'checkLoginMail',
    summary: 'Check whether the token of the link is valid, without using it, and which account it logs in to',
    body: CheckLoginMail,
    response: { 200: LoginMailAccount, ...failures(400, 413, 415) },
  },
  confirm: {
    tags,
    operationId: 'logInByMail',
    summary: 'Log in with the token of the link, or with the code',
    body: ConfirmLoginMail,
    [HEADERS]: { 200: ['Set-Cookie'] },
    response: { 200: LoginReply, ...failures(400, 413, 415, 429), 401: LoginFailure },
  },
  stepUp: {
    tags,
    security: [{ bearer: [] }],
    operationId: 'requestStepUpMail',
    [FAILURES]: examples(new EmailNotVerified()),
    summary: 'Request an e-mail with a code to confirm that it is you',
    response: { 202: StepUpMailReply, ...failures(401, 403, 409, 429) },
  },
}

/** Adds the routes for logging in and stepping up by mail, if the option `loginMail` is set (contract 16.2, 16.6). */
const loginMailRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { usherOptions, usherAccess: { authenticateAny, callerOf }, usherSignIn: { loginMails } } = app
  if (!usherOptions.loginMail) return
  const { read, request: requestMail, logIn } = await createLogInByMail(app)
  const { rejectFlood, show } = createLogIn(app, await createSessionCookie(app))
  forbidStoring(app)

  app.post('/auth/login/mail', { schema: schemas.request }, onRequestMail)
  app.post('/auth/login/mail/check', { schema: schemas.check }, onCheck)
  app.post('/auth/login/mail/confirm', { schema: schemas.confirm, onRequest: rejectFlood }, onConfirm)
  app.post('/auth/step-up/mail', { schema: schemas.stepUp, onRequest: authenticateAny }, onStepUp)

  async function onRequestMail (request: RequestOf<typeof schemas.request>, reply: ReplyOf<typeof schemas.request>) {
    const loginId = await requestMail(request, reply, request.body)
    const message = 'If there is a user with this address, a mail to log in is on its way'
    return reply.code(202).send({ message, ...request.body.cookie === false && { loginId } })
  }

  async function onCheck (request: RequestOf<typeof schemas.check>) {
    const { token, loginId } = request.body
    return loginMails.open(token, read(request, loginId))
  }

  async function onConfirm (request: RequestOf<typeof schemas.confirm>, reply: ReplyOf<typeof schemas.confirm>) {
    return show(await logIn(request, reply, request.body))
  }

  async function onStepUp (request: RequestOf<typeof schemas.stepUp>, reply: ReplyOf<typeof schemas.stepUp>) {
    const id = await loginMails.requestStepUp(callerOf(request))
    return reply.code(202).send({ message: 'A code to confirm that it is you is on its way', id })
  }
}

/** Returns the login by mail, which the API and the pages share (contract 15.2, 16.6). */
export async function createLogInByMail (app: FastifyInstance) {
  const { usherAccess: { callerOf }, usherSignIn: { loginMails } } = app
  const cookies = await createSessionCookie(app)
  const cookie = await createLoginMailCookie(app)

  /** Returns what proves that the client has asked for mails. */
  const read = (request: FastifyRequest, loginId: string | undefined): string[] =>
    loginId === undefined ? cookie.read(request) : [loginId]

  return {
    read,

    /** Requests a mail. It sets the cookie, and returns what proves the same. Throws `TooManyRequests`. */
    async request (request: FastifyRequest, reply: FastifyReply, given: RequestLoginMail): Promise<string> {
      const loginId = await loginMails.request(callerOf(request, { actor: null }), given.email)
      if (given.cookie !== false) cookie.add(reply, loginId)
      return loginId
    },

    /** Logs a user in by the token of a link or by a code, and sets the session cookie. */
    async logIn (
      request: FastifyRequest, reply: FastifyReply,
      { token, code, loginId }: { token?: string | undefined, code?: string | undefined, loginId?: string | undefined }
    ): Promise<LoggedIn> {
      const caller = callerOf(request, { actor: null, via: 'mail-link' })
      // The login ends the session of the cookie that the browser has. Only pages of allowed origins may cause that.
      const replaced = cookies.serves(request) ? cookies.read(request) : undefined
      if ((token === undefined) === (code === undefined)) throw new InvalidInput('either token or code is required')
      const loggedIn = token === undefined
        ? await loginMails.logInByCode(caller, { code: code!, secrets: read(request, loginId), replaced })
        : await loginMails.logInByLink(caller, token, replaced)
      cookies.set(reply, loggedIn.cookie, loggedIn.expiresAt)
      return loggedIn
    },
  }
}

export default loginMailRoutes
