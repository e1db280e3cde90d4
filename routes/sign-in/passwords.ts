import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance } from 'fastify'
import { findAccount, getTokenOwner } from '../../db/mail-links/password-links.ts'
import { listRemovedByReset } from '../../db/sign-in/repairs.ts'
import { forbidStoring } from '../../plugins/http/requests.ts'
import { actorWithoutSession } from '../../plugins/access/actors.ts'
import type { Caller } from '../../plugins/access/caller.ts'
import { hashSecret } from '../../plugins/access/secrets.ts'
import { hashingOf } from '../../plugins/sign-in/passwords/passwords.ts'
import { IdParams } from '../../schema/http/params.ts'
import { InvalidInput } from '../../schema/http/errors.ts'
import { IDEMPOTENT, type ResultKey } from '../../schema/http/idempotency.ts'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import {
  ChangePassword, CheckReset, ConfirmReset, MailReply, normalizePassword, PasswordIsSet, rejectPersonalWords,
  RequestReset, ResetCheck, WrongPassword,
} from '../../schema/sign-in/passwords/passwords.ts'
import { failures, HEADERS, NoContent, STEP_UP } from '../../schema/http/reply.ts'
import { ServiceUser, UserDisabled, UserNotFound } from '../../schema/users/users.ts'
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
    usherDatabase: { db }, usherAccess: { allow, actorOf, callerOf, policy }, usherSignIn: { login, passwords, stepUp },
    usherMailLinks: { passwordLinks: links },
    usherAccounts: accounts, usherAudit: audit,
  } = app
  const once = createOnce(app)
  const invite = createInvite(app)
  forbidStoring(app)

  app.put('/auth/password', { schema: schemas.change, onRequest: allow('passwords:change') }, onChange)
  app.post('/auth/password-reset', { schema: schemas.requestReset }, onRequestReset)
  app.post('/auth/password-reset/check', { schema: schemas.checkReset }, onCheckReset)
  app.post('/auth/password-reset/confirm', { schema: schemas.confirmReset }, onConfirmReset)
  app.post('/users/:id/invitation', { schema: schemas.invite, onRequest: allow('users:invite') }, onInvite)

  async function onChange (request: RequestOf<typeof schemas.change>, reply: ReplyOf<typeof schemas.change>) {
    const { currentPassword, password } = request.body
    const caller = callerOf(request)
    const user = await findAccount(db, actorOf(request).id)
    // The user was deleted after the token was verified.
    if (!user) throw new InvalidToken()
    if (password === normalizePassword(currentPassword)) {
      throw new InvalidInput('password must differ from the current one')
    }
    rejectPersonalWords(password, user)
    await stepUp.requireWithSecondFactor(caller)
    const logFailure = async () => {
      await caller.confirm()
      await audit.add(caller, { action: 'password.change-failed' })
    }
    const passwordHash = await login.checkOwnPassword(caller, user, currentPassword, logFailure)
    const current = { ...user, passwordHash }
    const changed = await passwords.hash(password, hashingOf(caller))
    await accounts.changePassword(caller, current, changed).catch(async (error) => {
      if (error instanceof WrongPassword) await logFailure()
      throw error
    })
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
    const mayKnow = invitedBy !== null && policy.allows(actorWithoutSession({ id, role }), 'users:read', invitedBy.id)
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
    const passwordHash = await passwords.hash(password, { ...hashingOf(caller), isKnown: true })
    await accounts.resetPassword(caller, user, { hash, passwordHash, keep })
    return reply.code(204).send(null)
  }

  async function onInvite (request: RequestOf<typeof schemas.invite>, reply: ReplyOf<typeof schemas.invite>) {
    await once(request, reply, { content: null }, {
      operate: (key) => invite(callerOf(request), request.params.id, key), restore: () => {},
    })
    return reply.code(202).send({ message: 'The invitation is on its way' })
  }
}

/**
 * Returns a function that invites a user, which the API and the console share. It throws `UserNotFound`, `ServiceUser`,
 * `UserDisabled`, `PasswordIsSet`, `NoMailer`, `Unauthenticated`, `Forbidden`, `InvalidToken` and `KeyTaken`.
 */
export function createInvite ({ usherDatabase: { db }, usherMailLinks: { passwordLinks } }: FastifyInstance) {
  return async (caller: Caller, id: string, key?: ResultKey): Promise<void> => {
    caller.authorize('users:invite')
    const user = await findAccount(db, id)
    if (!user) throw new UserNotFound()
    if (user.kind === 'service') throw new ServiceUser()
    if (user.disabled) throw new UserDisabled()
    if (user.passwordHash !== null) throw new PasswordIsSet()
    await passwordLinks.invite(user.id, caller, key)
  }
}

export default passwordRoutes
