import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { onRequestAsyncHookHandler } from 'fastify'
import { addVary } from '../../plugins/http/vary.ts'
import { decodeCursor, encodeCursor } from '../../schema/http/cursor.ts'
import { pageTag } from '../../schema/http/entity-tag.ts'
import { IdParams } from '../../schema/http/params.ts'
import { examples, FAILURES, failures, NoContent, NotModified } from '../../schema/http/reply.ts'
import { UseToken } from '../../schema/mail-links/mail-token.ts'
import type { OrganizationAction } from '../../schema/options/organizations.ts'
import {
  AcceptedInvitation, AcceptInvitation, CheckedInvitation, CreateInvitation, InvitationList, InvitationParams,
  ListInvitations, AlreadyMember
} from '../../schema/organizations/organizations.ts'
import { ConfirmationErrors, MailReply } from '../../schema/sign-in/passwords/passwords.ts'
import { revalidate, sendNotModified } from '../http/conditional-request.ts'
import { linkNextPage } from '../http/next-page.ts'
import { idOf } from '../http/params.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'

const ofOrganization = { tags: ['organizations'], security: [{ bearer: [] }] }
// A session of the user makes a difference.
const optional: Record<string, string[]>[] = [{ bearer: [] }, {}]
const schemas = {
  create: {
    ...ofOrganization,
    operationId: 'createInvitation',
    [FAILURES]: examples(new AlreadyMember()),
    summary: 'Send an invitation to an organisation, which replaces the pending one for the address',
    params: IdParams,
    body: CreateInvitation,
    response: { 202: MailReply, ...failures(400, 401, 403, 404, 409, 413, 415, 429) },
  },
  list: {
    ...ofOrganization,
    operationId: 'listInvitations',
    summary: 'List the pending invitations of an organisation, newest first',
    params: IdParams,
    querystring: ListInvitations,
    response: { 200: InvitationList, 304: NotModified, ...failures(400, 401, 403, 404, 412) },
  },
  withdraw: {
    ...ofOrganization,
    operationId: 'withdrawInvitation',
    summary: 'Withdraw an invitation',
    params: InvitationParams,
    response: { 204: NoContent, ...failures(401, 403, 404) },
  },
  check: {
    tags: ['auth'],
    operationId: 'checkInvitation',
    summary: 'Read the invitation of a token, without using it',
    body: UseToken,
    response: { 200: CheckedInvitation, ...failures(400, 413, 415) },
  },
  accept: {
    tags: ['auth'],
    security: optional,
    operationId: 'acceptInvitation',
    [FAILURES]: examples(new AlreadyMember()),
    summary: 'Accept an invitation: as the user of the token, or as a new one with a name and a password',
    body: AcceptInvitation,
    response: { 200: AcceptedInvitation, 400: ConfirmationErrors, ...failures(401, 403, 409, 413, 415) },
  },
}

interface Given {
  /** Returns hooks that ask whether the caller may perform an action in the organisation of the path. */
  allowIn: (action: OrganizationAction) => onRequestAsyncHookHandler[]
}

/** Adds the routes of invitations to organisations (contract 19.5). */
const invitationRoutes: FastifyPluginAsyncTypebox<Given> = async (app, { allowIn }) => {
  const {
    usherAccess: { callerOf, identifyQuietly }, usherOptions: { publicPath }, usherOrganizations: { invitations },
  } = app

  app.post('/organizations/:id/invitations', { schema: schemas.create, onRequest: allowIn('members:invite') }, onCreate)
  app.get('/organizations/:id/invitations', {
    schema: schemas.list, exposeHeadRoute: true, onRequest: allowIn('members:invite'),
  }, onList)
  app.delete('/organizations/:id/invitations/:invitationId', {
    schema: schemas.withdraw, onRequest: allowIn('members:invite'),
  }, onWithdraw)
  app.post('/auth/invitations/check', { schema: schemas.check }, onCheck)
  app.post('/auth/invitations/accept', { schema: schemas.accept, onRequest: identifyQuietly }, onAccept)

  async function onCreate (request: RequestOf<typeof schemas.create>, reply: ReplyOf<typeof schemas.create>) {
    await invitations.create(callerOf(request), idOf(request), request.body)
    return reply.code(202).send({ message: 'The invitation is on its way' })
  }

  async function onList (request: RequestOf<typeof schemas.list>, reply: ReplyOf<typeof schemas.list>) {
    const { limit, after } = request.query
    const { rows, next } =
      await invitations.list(callerOf(request), idOf(request), { limit, after: after && decodeCursor(after) })
    addVary(reply, 'Authorization')
    const isCurrent = revalidate(request, reply, pageTag(rows, 'invitations 1', `${next}`))
    linkNextPage(reply, `${publicPath}/api/organizations/${idOf(request)}/invitations`, { limit }, next && encodeCursor(next))
    return isCurrent ? sendNotModified(request, reply) : [...rows]
  }

  async function onWithdraw (request: RequestOf<typeof schemas.withdraw>, reply: ReplyOf<typeof schemas.withdraw>) {
    await invitations.withdraw(callerOf(request), idOf(request), request.params.invitationId.toLowerCase())
    return reply.code(204).send(null)
  }

  // As cheap as any other read and, with 256 random bits to guess, of no use to an attacker.
  async function onCheck (request: RequestOf<typeof schemas.check>) {
    return invitations.check(request.body.token)
  }

  async function onAccept (request: RequestOf<typeof schemas.accept>) {
    const { id, organizationId, userId, role } =
      await invitations.accept(callerOf(request, { via: 'mail-link' }), request.body)
    return { id, organizationId, userId, role }
  }
}

export default invitationRoutes
