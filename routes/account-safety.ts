import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance } from 'fastify'
import { getEmailTokenOwner } from '../db/auth/email-tokens.ts'
import { findAccount } from '../db/auth/password-tokens.ts'
import { getUndoTokenOwner } from '../db/auth/undo-tokens.ts'
import type { Caller } from '../plugins/auth/caller.ts'
import { hashSecret } from '../plugins/auth/cookie-value.ts'
import { forbidStoring } from '../plugins/http/requests.ts'
import { UseToken } from '../schema/auth/mail-token.ts'
import { IdParams } from '../schema/http/params.ts'
import { MailReply } from '../schema/auth/password.ts'
import { failures, NoContent } from '../schema/http/reply.ts'
import { UserNotFound } from '../schema/users/user.ts'
import { idOf } from './params.ts'
import type { ReplyOf, RequestOf } from './route-types.ts'

const schemas = {
  verify: {
    tags: ['users'],
    security: [{ bearer: [] }],
    summary: 'Send a link to verify the address of a user',
    params: IdParams,
    response: { 202: MailReply, ...failures(401, 403, 404, 409, 429) },
  },
  check: {
    tags: ['auth'],
    summary: 'Check whether the token of a link to verify an address is valid, without using it',
    body: UseToken,
    response: { 204: NoContent, ...failures(400, 413, 415) },
  },
  confirm: {
    tags: ['auth'],
    summary: 'Verify an address with the token of the link, or change it to that address',
    body: UseToken,
    response: { 204: NoContent, ...failures(400, 409, 413, 415) },
  },
  checkUndo: {
    tags: ['auth'],
    summary: 'Check whether the token of a link to undo a change is valid, without using it',
    body: UseToken,
    response: { 204: NoContent, ...failures(400, 413, 415) },
  },
  undo: {
    tags: ['auth'],
    summary:
      'Undo a change of the address or the password with the token of the link, and end every session of the user',
    body: UseToken,
    response: { 204: NoContent, ...failures(400, 409, 413, 415) },
  },
}

/** Adds the routes for verifying an address and for undoing a change of the address or the password (contract 11.3). */
const accountSafetyRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherDatabase: { db }, usherAuth: { allow, callerOf }, usherAccounts: accounts,
  } = app
  const sendVerification = createSendVerification(app)
  forbidStoring(app)

  app.post(
    '/users/:id/email-verification', { schema: schemas.verify, onRequest: allow('users:verify-email', idOf) }, onVerify
  )
  app.post('/auth/email-verification/check', { schema: schemas.check }, onCheck)
  app.post('/auth/email-verification/confirm', { schema: schemas.confirm }, onConfirm)
  app.post('/auth/undo/check', { schema: schemas.checkUndo }, onCheckUndo)
  app.post('/auth/undo', { schema: schemas.undo }, onUndo)

  async function onVerify (request: RequestOf<typeof schemas.verify>, reply: ReplyOf<typeof schemas.verify>) {
    await sendVerification(callerOf(request), request.params.id)
    return reply.code(202).send({ message: 'The link is on its way' })
  }

  async function onCheck (request: RequestOf<typeof schemas.check>, reply: ReplyOf<typeof schemas.check>) {
    await getEmailTokenOwner(db, hashSecret(request.body.token))
    return reply.code(204).send(null)
  }

  async function onCheckUndo (request: RequestOf<typeof schemas.checkUndo>, reply: ReplyOf<typeof schemas.checkUndo>) {
    await getUndoTokenOwner(db, hashSecret(request.body.token))
    return reply.code(204).send(null)
  }

  async function onConfirm (request: RequestOf<typeof schemas.confirm>, reply: ReplyOf<typeof schemas.confirm>) {
    await accounts.verifyEmail(callerOf(request, { via: 'mail-link' }), hashSecret(request.body.token))
    return reply.code(204).send(null)
  }

  async function onUndo (request: RequestOf<typeof schemas.undo>, reply: ReplyOf<typeof schemas.undo>) {
    await accounts.undo(callerOf(request, { via: 'mail-link' }), hashSecret(request.body.token))
    return reply.code(204).send(null)
  }
}

/**
 * Returns a function that sends a user a link to verify the address, which the API and the console share. It throws
 * `UserNotFound`, `NoMailer`, `TooManyRequests`, `Unauthenticated`, `Forbidden`.
 */
export function createSendVerification (
  { usherDatabase: { db }, usherAuth: { emailLinks, throttle } }: FastifyInstance
) {
  return async (caller: Caller, id: string): Promise<void> => {
    caller.authorize('users:verify-email', id.toLowerCase())
    const user = await findAccount(db, id)
    if (!user) throw new UserNotFound()
    emailLinks.requireMailer()
    await throttle.verification({ userId: user.id, client: caller.client })
    await emailLinks.send(user.id, caller)
  }
}

export default accountSafetyRoutes
