import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import type { SessionOf } from '../../db/mail-links/verification-links.ts'
import { getUndoTokenOwner } from '../../db/mail-links/undo-links.ts'
import { hashSecret } from '../../plugins/access/secrets.ts'
import { createSessionCookie } from '../access/cookies.ts'
import { forbidStoring } from '../../plugins/http/requests.ts'
import { UseToken, EmailVerified } from '../../schema/mail-links/mail-token.ts'
import { IdParams } from '../../schema/http/params.ts'
import { ConfirmationErrors, ConfirmEmail, MailReply } from '../../schema/sign-in/passwords/passwords.ts'
import { examples, FAILURES, failures, HEADERS, NoContent } from '../../schema/http/reply.ts'
import { EmailTaken } from '../../schema/users/users.ts'
import { idOf } from '../http/params.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'

// A session of the user makes a difference.
const optional: Record<string, string[]>[] = [{ bearer: [] }, {}]
const schemas = {
  verify: {
    tags: ['users'],
    security: [{ bearer: [] }],
    operationId: 'requestEmailVerification',
    [FAILURES]: examples(new EmailVerified()),
    summary: 'Send a link to verify the address of a user',
    params: IdParams,
    response: { 202: MailReply, ...failures(401, 403, 404, 409, 429) },
  },
  check: {
    tags: ['auth'],
    security: optional,
    operationId: 'checkEmailVerification',
    summary: 'Check whether the token of a link to verify an address is valid, without using it, and what it needs',
    body: UseToken,
    [HEADERS]: { 204: ['Password-Required', 'Login-Required'] },
    response: { 204: NoContent, ...failures(400, 413, 415) },
  },
  confirm: {
    tags: ['auth'],
    security: optional,
    operationId: 'verifyEmail',
    [FAILURES]: examples(new EmailTaken()),
    summary: 'Verify an address with the token of the link, or change it to that address',
    body: ConfirmEmail,
    response: { 204: NoContent, 400: ConfirmationErrors, ...failures(403, 409, 413, 415) },
  },
  checkUndo: {
    tags: ['auth'],
    operationId: 'checkUndo',
    summary: 'Check whether the token of a link to undo a change is valid, without using it',
    body: UseToken,
    response: { 204: NoContent, ...failures(400, 413, 415) },
  },
  undo: {
    tags: ['auth'],
    operationId: 'undoChange',
    [FAILURES]: examples(new EmailTaken()),
    summary:
      'Undo a change of the address or the password with the token of the link, and end every session of the user',
    body: UseToken,
    response: { 204: NoContent, ...failures(400, 409, 413, 415) },
  },
}

/** Adds the routes for verifying an address and for undoing a change of the address or the password (contract 11.3). */
const accountSafetyRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherDatabase: { db }, usherAccess: { actors, allow, callerOf, identifyQuietly, sessions }, usherAccounts: accounts,
    usherMailLinks: { verificationLinks },
  } = app
  const cookies = await createSessionCookie(app)
  forbidStoring(app)

  app.post(
    '/users/:id/email-verification', { schema: schemas.verify, onRequest: allow('users:verify-email', idOf) }, onVerify
  )
  app.post('/auth/email-verification/check', { schema: schemas.check, onRequest: identifyQuietly }, onCheck)
  app.post('/auth/email-verification/confirm', { schema: schemas.confirm, onRequest: identifyQuietly }, onConfirm)
  app.post('/auth/undo/check', { schema: schemas.checkUndo }, onCheckUndo)
  app.post('/auth/undo', { schema: schemas.undo }, onUndo)

  async function onVerify (request: RequestOf<typeof schemas.verify>, reply: ReplyOf<typeof schemas.verify>) {
    await verificationLinks.send(callerOf(request), request.params.id)
    return reply.code(202).send({ message: 'The link is on its way' })
  }

  async function onCheck (request: RequestOf<typeof schemas.check>, reply: ReplyOf<typeof schemas.check>) {
    const needed = await accounts.whatVerificationNeeds(hashSecret(request.body.token), await findSession(request))
    if (needed === 'password') reply.header('password-required', 'true')
    if (needed === 'session') reply.header('login-required', 'true')
    return reply.code(204).send(null)
  }

  // Returns the session of a client, by its token or, on the pages, by its cookie.
  async function findSession (request: FastifyRequest): Promise<SessionOf | undefined> {
    const actor = actors.in(request)
    if (actor?.sessionId) return { userId: actor.id, sessionId: actor.sessionId }
    const cookie = cookies.serves(request) ? cookies.read(request) : undefined
    const found = cookie && await sessions.find(cookie)
    return found && { userId: found.user.id, sessionId: found.sessionId }
  }

  async function onCheckUndo (request: RequestOf<typeof schemas.checkUndo>, reply: ReplyOf<typeof schemas.checkUndo>) {
    await getUndoTokenOwner(db, hashSecret(request.body.token))
    return reply.code(204).send(null)
  }

  async function onConfirm (request: RequestOf<typeof schemas.confirm>, reply: ReplyOf<typeof schemas.confirm>) {
    const { token, password } = request.body
    const session = await findSession(request)
    await accounts.verifyEmail(callerOf(request, { via: 'mail-link' }), hashSecret(token), { session, password })
    return reply.code(204).send(null)
  }

  async function onUndo (request: RequestOf<typeof schemas.undo>, reply: ReplyOf<typeof schemas.undo>) {
    await accounts.undo(callerOf(request, { via: 'mail-link' }), hashSecret(request.body.token))
    return reply.code(204).send(null)
  }
}

export default accountSafetyRoutes
