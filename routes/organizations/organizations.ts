import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { OrganizationRow } from '../../db/organizations/organizations.ts'
import type { Caller } from '../../plugins/access/caller.ts'
import { describeTag } from '../../plugins/http/docs.ts'
import { addJsonParser, forbidStoring } from '../../plugins/http/requests.ts'
import { addVary } from '../../plugins/http/vary.ts'
import { decodeCursor, encodeCursor } from '../../schema/http/cursor.ts'
import { combinedTag, pageTag, readIfMatch } from '../../schema/http/entity-tag.ts'
import { IDEMPOTENT } from '../../schema/http/idempotency.ts'
import { IdParams, PreconditionHeaders } from '../../schema/http/params.ts'
import { examples, FAILURES, failures, HEADERS, NoContent, NotModified, STEP_UP } from '../../schema/http/reply.ts'
import type { OrganizationAction } from '../../schema/options/organizations.ts'
import {
  AddMember, AlreadyMember, CreateOrganization, ListMembers, ListOrganizations, Member, MemberList, MemberParams,
  Organization, OrganizationInUse, OrganizationList, OwnOrganizationList, PatchMember, PatchOrganization, SlugTaken,
} from '../../schema/organizations/organizations.ts'
import { revalidate, sendNotModified } from '../http/conditional-request.ts'
import { createOnce } from '../http/idempotency-key.ts'
import { MERGE_PATCH, PATCH_TYPES, requirePatchType } from '../http/merge-patch.ts'
import { linkNextPage } from '../http/next-page.ts'
import { idOf } from '../http/params.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'
import invitationRoutes from './invitations.ts'

const tags = ['organizations']
const security = [{ bearer: [] }]
const schemas = {
  list: {
    tags,
    security,
    operationId: 'listOrganizations',
    summary: 'List the organisations of the authenticated user, or all for admins of the service',
    querystring: ListOrganizations,
    response: { 200: OrganizationList, 304: NotModified, ...failures(400, 401, 403, 412) },
  },
  own: {
    tags: ['auth'],
    security,
    operationId: 'listOwnOrganizations',
    summary: 'List the organisations of the authenticated user, with the role in each',
    response: { 200: OwnOrganizationList, 304: NotModified, ...failures(401, 403, 412) },
  },
  create: {
    tags,
    security,
    operationId: 'createOrganization',
    [FAILURES]: examples(new SlugTaken()),
    summary: 'Found an organisation, of which the authenticated user is the owner',
    [IDEMPOTENT]: true,
    [HEADERS]: { 201: ['ETag'] },
    body: CreateOrganization,
    response: { 201: Organization, ...failures(400, 401, 403, 409, 410, 413, 415, 422) },
  },
  read: {
    tags,
    security,
    operationId: 'getOrganization',
    summary: 'Read an organisation',
    params: IdParams,
    response: { 200: Organization, 304: NotModified, ...failures(401, 403, 404, 412) },
  },
  patch: {
    tags,
    security,
    operationId: 'updateOrganization',
    [FAILURES]: examples(new SlugTaken()),
    summary: 'Change an organisation: absent members stay as they are',
    consumes: PATCH_TYPES,
    [HEADERS]: { 200: ['ETag'], 415: ['Accept-Patch'] },
    params: IdParams,
    headers: PreconditionHeaders,
    body: PatchOrganization,
    response: { 200: Organization, ...failures(400, 401, 403, 404, 409, 412, 413, 415) },
  },
  delete: {
    tags,
    security,
    operationId: 'deleteOrganization',
    [FAILURES]: examples(new OrganizationInUse()),
    summary: 'Delete an organisation: its memberships end on every node',
    [HEADERS]: STEP_UP,
    params: IdParams,
    headers: PreconditionHeaders,
    response: { 204: NoContent, ...failures(400, 401, 403, 404, 409, 412) },
  },
  listMembers: {
    tags,
    security,
    operationId: 'listMembers',
    summary: 'List the members of an organisation',
    params: IdParams,
    querystring: ListMembers,
    response: { 200: MemberList, 304: NotModified, ...failures(400, 401, 403, 404, 412) },
  },
  readMember: {
    tags,
    security,
    operationId: 'getMember',
    summary: 'Read a member of an organisation',
    params: MemberParams,
    response: { 200: Member, 304: NotModified, ...failures(401, 403, 404, 412) },
  },
  addMember: {
    tags,
    security,
    operationId: 'addMember',
    [FAILURES]: examples(new AlreadyMember()),
    summary: 'Add a user to an organisation without an invitation, for admins of the service',
    params: IdParams,
    body: AddMember,
    response: { 201: Member, ...failures(400, 401, 403, 404, 409, 413, 415) },
  },
  patchMember: {
    tags,
    security,
    operationId: 'updateMember',
    summary: 'Give a member another role, which ends tokens and API keys for the former one',
    consumes: PATCH_TYPES,
    [HEADERS]: { 415: ['Accept-Patch'] },
    params: MemberParams,
    body: PatchMember,
    response: { 200: Member, ...failures(400, 401, 403, 404, 409, 413, 415) },
  },
  removeMember: {
    tags,
    security,
    operationId: 'removeMember',
    summary: 'Remove a member from an organisation, or leave it',
    params: MemberParams,
    response: { 204: NoContent, ...failures(401, 403, 404, 409) },
  },
}

/** Adds the routes of organisations and their members (contract 19.2). Responses are for one user only. */
const organizationRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherAccess: { actorOf, allow, authenticate, callerOf, requireGranted }, usherOptions: { publicPath },
    usherOrganizations: { operations: organizations },
  } = app
  const once = createOnce(app)
  const path = `${publicPath}/api/organizations`
  describeTag(app, 'organizations', 'Organisations, their members and invitations')
  forbidStoring(app)

  // The operations decide by the membership. What is asked before the body arrives is whether the caller may do it now.
  const allowIn = (action: OrganizationAction) => [authenticate, async (request: FastifyRequest) => {
    await organizations.read(callerOf(request), action, idOf(request))
  }]

  app.get('/auth/organizations', {
    schema: schemas.own, exposeHeadRoute: true, onRequest: [authenticate, requireGranted('organizations:read')],
  }, onListOwn)
  app.get('/organizations', {
    schema: schemas.list, exposeHeadRoute: true, onRequest: [authenticate, requireGranted('organizations:read')],
  }, onList)
  app.post('/organizations', {
    schema: schemas.create, onRequest: allow('organizations:create'), preValidation: dropIgnored,
  }, onCreate)
  app.get('/organizations/:id', { schema: schemas.read, exposeHeadRoute: true, onRequest: authenticate }, onRead)
  app.delete('/organizations/:id', { schema: schemas.delete, onRequest: authenticate }, onDelete)
  app.get('/organizations/:id/members', {
    schema: schemas.listMembers, exposeHeadRoute: true, onRequest: allowIn('members:list'),
  }, onListMembers)
  app.get('/organizations/:id/members/:userId', {
    schema: schemas.readMember, exposeHeadRoute: true, onRequest: authenticate,
  }, onReadMember)
  app.post('/organizations/:id/members', {
    schema: schemas.addMember,
    onRequest: [...allowIn('members:invite'), async (request) => {
      organizations.authorizeEverywhere(callerOf(request), 'members:invite')
    }],
  }, onAddMember)
  app.delete('/organizations/:id/members/:userId', { schema: schemas.removeMember, onRequest: authenticate }, onRemoveMember)
  await app.register(async (app) => {
    addJsonParser(app, MERGE_PATCH)
    app.patch('/organizations/:id', {
      schema: schemas.patch,
      onRequest: [...allowIn('organizations:update'), requirePatchType],
      preValidation: dropIgnored,
    }, onPatch)
    app.patch('/organizations/:id/members/:userId', {
      schema: schemas.patchMember, onRequest: [...allowIn('members:update'), requirePatchType],
    }, onPatchMember)
  })
  await app.register(invitationRoutes, { allowIn })

  // Before the body is validated, because the values of fields that the caller may not write do not matter.
  async function dropIgnored (request: FastifyRequest): Promise<void> {
    request.body = organizations.withoutIgnored(callerOf(request), request.body)
  }

  async function onListOwn (request: RequestOf<typeof schemas.own>, reply: ReplyOf<typeof schemas.own>) {
    const caller = callerOf(request)
    const listed = await organizations.listOf(caller, actorOf(request).id)
    addVary(reply, 'Authorization')
    const { key } = organizations.viewOf(caller)
    if (revalidate(request, reply, pageTag(listed, 'own organizations 1', key))) return sendNotModified(request, reply)
    return listed
  }

  async function onList (request: RequestOf<typeof schemas.list>, reply: ReplyOf<typeof schemas.list>) {
    const { q, limit, after } = request.query
    const caller = callerOf(request)
    const { rows, next } = await organizations.list(caller, { q, limit, after: after && decodeCursor(after) })
    addVary(reply, 'Authorization')
    const { key } = organizations.viewOf(caller)
    const isCurrent = revalidate(request, reply, tagOf(rows, `organizations ${next} ${key}`))
    linkNextPage(reply, path, { q, limit }, next && encodeCursor(next))
    return isCurrent ? sendNotModified(request, reply) : [...rows]
  }

  async function onCreate (request: RequestOf<typeof schemas.create>, reply: ReplyOf<typeof schemas.create>) {
    const caller = callerOf(request)
    const created = await once(request, reply, { content: request.body }, {
      operate: (key) => organizations.create(caller, request.body, { once: key }),
      restore: (stored) => organizations.restoreCreated(caller, stored),
    })
    return reply.code(201).header('location', `${path}/${created.id}`).send(showTagged(caller, created, reply))
  }

  async function onRead (request: RequestOf<typeof schemas.read>, reply: ReplyOf<typeof schemas.read>) {
    const caller = callerOf(request)
    const organization = await organizations.get(caller, idOf(request))
    addVary(reply, 'Authorization')
    const { tagOf } = organizations.viewOf(caller)
    if (revalidate(request, reply, tagOf(organization))) return sendNotModified(request, reply)
    return organization
  }

  async function onPatch (request: RequestOf<typeof schemas.patch>, reply: ReplyOf<typeof schemas.patch>) {
    const { body, headers } = request
    const [caller, match] = [callerOf(request), readIfMatch(headers['if-match'])]
    return showTagged(caller, await organizations.update(caller, idOf(request), body, match), reply)
  }

  function showTagged (caller: Caller, organization: OrganizationRow, reply: FastifyReply): OrganizationRow {
    reply.header('etag', organizations.viewOf(caller).tagOf(organization))
    return organization
  }

  async function onDelete (request: RequestOf<typeof schemas.delete>, reply: ReplyOf<typeof schemas.delete>) {
    const match = readIfMatch(request.headers['if-match'])
    await organizations.delete(callerOf(request), idOf(request), match)
    return reply.code(204).send(null)
  }

  async function onListMembers (
    request: RequestOf<typeof schemas.listMembers>, reply: ReplyOf<typeof schemas.listMembers>
  ) {
    const { role, q, limit, after } = request.query
    const { rows, next } = await organizations.listMembers(
      callerOf(request), idOf(request), { role, q, limit, after: after && decodeCursor(after) }
    )
    addVary(reply, 'Authorization')
    const isCurrent = revalidate(request, reply, pageTag(rows, 'members 1', `${next}`))
    linkNextPage(reply, `${path}/${idOf(request)}/members`, { role, q, limit }, next && encodeCursor(next))
    return isCurrent ? sendNotModified(request, reply) : [...rows]
  }

  async function onReadMember (
    request: RequestOf<typeof schemas.readMember>, reply: ReplyOf<typeof schemas.readMember>
  ) {
    const member = await organizations.getMember(callerOf(request), idOf(request), request.params.userId.toLowerCase())
    addVary(reply, 'Authorization')
    return revalidate(request, reply, pageTag([member], 'member 1')) ? sendNotModified(request, reply) : member
  }

  async function onAddMember (request: RequestOf<typeof schemas.addMember>, reply: ReplyOf<typeof schemas.addMember>) {
    const member = await organizations.addMember(callerOf(request), idOf(request), request.body)
    return reply.code(201).header('location', `${path}/${idOf(request)}/members/${member.userId}`).send(member)
  }

  async function onPatchMember (request: RequestOf<typeof schemas.patchMember>) {
    const { body: { role }, params: { userId } } = request
    return organizations.updateMember(callerOf(request), idOf(request), userId.toLowerCase(), role)
  }

  async function onRemoveMember (
    request: RequestOf<typeof schemas.removeMember>, reply: ReplyOf<typeof schemas.removeMember>
  ) {
    await organizations.removeMember(callerOf(request), idOf(request), request.params.userId)
    return reply.code(204).send(null)
  }
}

const tagOf = (rows: readonly OrganizationRow[], variant: string): string =>
  combinedTag([variant, ...rows.flatMap(({ id, rowVersion }) => [id, rowVersion])])

export default organizationRoutes
