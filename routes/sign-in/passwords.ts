import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { getTokenOwner } from '../../db/mail-links/password-links.ts'
import { listRemovedByReset } from '../../db/sign-in/repairs.ts'
import { forbidStoring } from '../../plugins/http/requests.ts'
import { actorWithoutSession } from '../../plugins/access/actors.ts'
import { hashSecret } from '../../plugins/access/secrets.ts'
import { hashingOf } from '../../plugins/sign-in/passwords/passwords.ts'
import { IdParams } from '../../schema/http/params.ts'
import { IDEMPOTENT } from '../../schema/http/idempotency.ts'
import {
  ChangePassword, CheckReset, ConfirmReset, MailReply, rejectPersonalWords, RequestReset, ResetCheck, PasswordIsSet
} from '../../schema/sign-in/passwords/passwords.ts'
import { examples, FAILURES, failures, HEADERS, NoContent, STEP_UP } from '../../schema/http/reply.ts'
import { createOnce } from '../http/idempotency-key.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'

const security = [{ bearer: [] }]
const schemas = {
  change: {
    tags: ['auth'],
    security,
    operationId: 'changePassword',
    summary: 'Change the password and end every other session',
    [HEADERS]: STEP_UP,
    body: ChangePassword,
    response: { 204: NoContent, ...failures(400, 401, 403, 413, 415, 429) },
  },
  requestReset: {
    tags: ['auth'],
    operationId: 'requestPasswordReset',
    summary: 'Request an e-mail with a link to set a password',
    body: RequestReset,
    response: { 202: MailReply, ...failures(400, 413, 415, 429) },
  },
  checkReset: {
    tags: ['auth'],
    operationId: 'checkPasswordReset',
    summary: 'Check whether the token of a link is valid, without using it, and what the reset removes',
    body: CheckReset,
    response: { 200: ResetCheck, ...failures(400, 413, 415) },
  },
  confirmReset: {
    tags: ['auth'],
    operationId: 'resetPassword',
    summary: 'Set a password with the token of the link and end every session of the user',
    body: ConfirmReset,
    response: { 204: NoContent, ...failures(400, 413, 415) },
  },
  invite: {
    tags: ['users'],
    security,
    operationId: 'inviteUser',
    [FAILURES]: examples(new PasswordIsSet()),
    summary: 'Invite a user who has no password: send a link to set one',
    [IDEMPOTENT]: true,
    params: IdParams,
    response: { 202: MailReply, ...failures(400, 401, 403, 404, 409, 410, 422) },
  },
}

/**
 * Adds the routes for changing a password, resetting it, and inviting a user to set the first one (contract 4.6, 4.7).
 */
const passwordRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherDatabase: { db }, usherAccess: { allow, callerOf, policy }, usherSignIn: { passwords },
    usherMailLinks: { passwordLinks: links }, usherAccounts: accounts,
  } = app
  const once = createOnce(app)
  forbidStoring(app)

  app.put('/auth/password', { schema: schemas.change, onRequest: allow('passwords:change') }, onChange)
  app.post('/auth/password-reset', { schema: schemas.requestReset }, onRequestReset)
  app.post('/auth/password-reset/check', { schema: schemas.checkReset }, onCheckReset)
  app.post('/auth/password-reset/confirm', { schema: schemas.confirmReset }, onConfirmReset)
  app.post('/users/:id/invitation', { schema: schemas.invite, onRequest: allow('users:invite') }, onInvite)

  async function onChange (request: RequestOf<typeof schemas.change>, reply: ReplyOf<typeof schemas.change>) {
    await accounts.changePassword(callerOf(request), request.body)
    return reply.code(204).send(null)
  }

  async function onRequestReset (
    request: RequestOf<typeof schemas.requestReset>, reply: ReplyOf<typeof schemas.requestReset>
  ) {
    await links.request(callerOf(request), request.body.email)
    return reply.code(202)
      .send({ message: 'If there is a user with this address, a link to set a password is on its way' })
  }

  // As cheap as any other read and, with 256 random bits to guess, of no use to an attacker. So there is no limit of
  // attempts.
  async function onCheckReset (
    request: RequestOf<typeof schemas.checkReset>, reply: ReplyOf<typeof schemas.checkReset>
  ) {
    const { id, role, email, isInvitation, invitedBy } = await getTokenOwner(db, hashSecret(request.body.token))
    const { ways, mayKeep } = await listRemovedByReset(db, id)
    // The name of a user is for those who may read the user.
    const mayKnow = invitedBy !== null && policy.allows(actorWithoutSession({ id, role }), 'users:read', { ownerId: invitedBy.id })
    return reply.send({
      removes: ways.map(({ id, kind, name, addedAt }) => ({ id, kind, name, addedAt })),
      mayKeep,
      email,
      isInvitation,
      invitedBy: mayKnow ? invitedBy.name : null,
    })
  }

  async function onConfirmReset (
    request: RequestOf<typeof schemas.confirmReset>, reply: ReplyOf<typeof schemas.confirmReset>
  ) {
    const { token, password, keep = [] } = request.body
    const caller = callerOf(request, { via: 'mail-link' })
    const hash = hashSecret(token)
    const user = await getTokenOwner(db, hash)
    // The password is checked before the token is consumed, so that the link still works after a password was rejected.
    rejectPersonalWords(password, user)
    const passwordHash = await passwords.hashChosen(password, { ...hashingOf(caller), isKnown: true })
    await accounts.resetPassword(caller, user, { hash, passwordHash, keep })
    return reply.code(204).send(null)
  }

  async function onInvite (request: RequestOf<typeof schemas.invite>, reply: ReplyOf<typeof schemas.invite>) {
    await once(request, reply, { content: null }, {
      operate: (key) => links.invite(callerOf(request), request.params.id, key), restore: () => {},
    })
    return reply.code(202).send({ message: 'The invitation is on its way' })
  }
}

export default passwordRoutes
