import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { create as contentDisposition } from 'content-disposition'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { restoreUser } from '../../db/idempotency/idempotency.ts'
import type { UserRow } from '../../db/tables/index.ts'
import { replacementOf } from '../../db/users/update-user.ts'
import { onceClosed } from '../../plugins/http/raw/connections.ts'
import { createResponseCutOff } from '../../plugins/http/raw/response-cut-off.ts'
import { addJsonParser, forbidStoring } from '../../plugins/http/requests.ts'
import {
  authorizeChange, authorizeCreation, authorizeMembers, authorizeNewRole, authorizeSomeChange, hasListedChange,
  withoutIgnored, writerOf,
} from '../../plugins/accounts/permissions.ts'
import { permits, readIfMatch, readIfNoneMatch, type Match } from '../../schema/http/entity-tag.ts'
import { IDEMPOTENT } from '../../schema/http/idempotency.ts'
import { IdParams, PreconditionHeaders } from '../../schema/http/params.ts'
import type { ReadAction } from '../../schema/options/policy.ts'
import { examples, FAILURES, failures, HEADERS, NoContent, NotModified, STEP_UP } from '../../schema/http/reply.ts'
import { UserExport } from '../../schema/users/user-export.ts'
import { CreateUser, PatchUser, ReplaceUser, User, EmailTaken, LastAdmin } from '../../schema/users/users.ts'
import { writableFields } from '../../schema/users/user-fields.ts'
import { revalidate, sendNotModified } from '../http/conditional-request.ts'
import { createOnce } from '../http/idempotency-key.ts'
import { MERGE_PATCH, PATCH_TYPES, requirePatchType } from '../http/merge-patch.ts'
import { idOf } from '../http/params.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'
import userListRoute from './user-list.ts'
import { describeTag } from '../../plugins/http/docs.ts'

const tags = ['users']
// Every response with a user depends on this.
const EMAIL: ReadAction[] = ['users:read-email']
const security = [{ bearer: [] }]
const schemas = {
  read: {
    tags,
    operationId: 'getUser',
    summary: 'Read a user',
    params: IdParams,
    response: { 200: User, 304: NotModified, ...failures(401, 403, 404, 412) },
  },
  create: {
    tags,
    security,
    operationId: 'createUser',
    [FAILURES]: examples(new EmailTaken()),
    summary: 'Create a user',
    [IDEMPOTENT]: true,
    body: CreateUser,
    response: { 201: User, ...failures(400, 401, 403, 409, 410, 413, 415, 422) },
  },
  replace: {
    tags,
    security,
    operationId: 'replaceUser',
    [FAILURES]: examples(new EmailTaken()),
    summary: 'Replace a user',
    [HEADERS]: STEP_UP,
    params: IdParams,
    headers: PreconditionHeaders,
    body: ReplaceUser,
    response: { 200: User, ...failures(400, 401, 403, 404, 409, 412, 413, 415, 429) },
  },
  patch: {
    tags,
    security,
    operationId: 'updateUser',
    [FAILURES]: examples(new EmailTaken()),
    summary: 'Change a user: absent members stay as they are',
    consumes: PATCH_TYPES,
    [HEADERS]: { ...STEP_UP, 415: ['Accept-Patch'] },
    params: IdParams,
    headers: PreconditionHeaders,
    body: PatchUser,
    response: { 200: User, ...failures(400, 401, 403, 404, 409, 412, 413, 415, 429) },
  },
  delete: {
    tags,
    security,
    operationId: 'deleteUser',
    [FAILURES]: examples(new LastAdmin()),
    summary: 'Delete a user with their sessions, posts and uploads',
    [HEADERS]: STEP_UP,
    params: IdParams,
    headers: PreconditionHeaders,
    response: { 204: NoContent, ...failures(400, 401, 403, 404, 409, 412) },
  },
  export: {
    tags,
    security,
    operationId: 'exportUser',
    summary: 'Export everything that is stored about a user',
    [HEADERS]: { 200: ['Content-Disposition'], ...STEP_UP },
    params: IdParams,
    response: { 200: UserExport, ...failures(401, 403, 404, 429) },
  },
}

/** Adds the routes for user records (contract 2). Their list has versions (contract 3). */
const userRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherUsers: users, usherAccess: { allow, authenticate, callerOf, identifies, policy, readerOf },
    usherAccounts: accounts,
    usherOptions: { publicPath, userFields },
  } = app
  const { newUsers } = accounts
  const path = `${publicPath}/api/users`
  const once = createOnce(app)
  const cutOff = createResponseCutOff(app)
  describeTag(app, 'users', 'User records')

  await app.register(userListRoute)
  app.get('/users/:id', {
    schema: { ...schemas.read, ...policy.securityOf('users:read', EMAIL) },
    exposeHeadRoute: true,
    onRequest: identifies('users:read', ...EMAIL),
  }, onRead)
  app.post('/users', {
    schema: schemas.create, onRequest: [authenticate, allowCreation], preValidation: readNewUser,
  }, onCreate)
  app.put('/users/:id', {
    schema: schemas.replace,
    onRequest: allow('users:replace', idOf),
    preValidation: readReplacement,
  }, onReplace)
  await app.register(async (app) => {
    addJsonParser(app, MERGE_PATCH)
    app.patch('/users/:id', {
      schema: schemas.patch,
      onRequest: [authenticate, allowPatch, requirePatchType],
      preValidation: readPatch,
    }, onPatch)
  })
  app.delete('/users/:id', { schema: schemas.delete, onRequest: allow('users:delete', idOf) }, onDelete)

  await app.register(async (app) => {
    forbidStoring(app)
    app.get('/users/:id/export', {
      schema: schemas.export, exposeHeadRoute: false, onRequest: allow('users:export', idOf),
    }, onExport)
  })

  async function onRead (request: RequestOf<typeof schemas.read>, reply: ReplyOf<typeof schemas.read>) {
    const { params: { id }, headers } = request
    const reader = readerOf(request)
    // A client that has the current version costs a statement that reads no more than the version. Other clients send
    // no tags.
    if (headers['if-none-match'] !== undefined && headers['if-match'] === undefined) {
      const version = await users.versionOf(reader, id)
      const etag = reader.viewOf(version.id).tagOf(version)
      if (revalidate(request, reply, etag)) return sendNotModified(request, reply)
    }
    const user = await users.get(reader, id)
    const view = reader.viewOf(user.id)
    if (revalidate(request, reply, view.tagOf(user))) return sendNotModified(request, reply)
    return view.show(user)
  }

  async function onCreate (request: RequestOf<typeof schemas.create>, reply: ReplyOf<typeof schemas.create>) {
    const caller = callerOf(request)
    const created = await once(request, reply, newUsers.contentOf(request.body), {
      isQuick: newUsers.isQuick(request.body),
      operate: (key) => newUsers.create(caller, request.body, key),
      restore: restoreUser,
    })
    return reply.code(201).header('location', `${path}/${created.id}`).send(showTagged(created, request, reply))
  }

  async function onReplace (request: RequestOf<typeof schemas.replace>, reply: ReplyOf<typeof schemas.replace>) {
    const match = await matchOf(request)
    const { body, params: { id } } = request
    const caller = callerOf(request)
    const changes = replacementOf(body, writableFields(userFields, writerOf(caller, id)))
    const user = await accounts.update(caller, id, changes, match)
    return showTagged(user, request, reply)
  }

  async function onPatch (request: RequestOf<typeof schemas.patch>, reply: ReplyOf<typeof schemas.patch>) {
    // RFC 7240: a new address of one's own takes effect later, when the link that is sent to it is used.
    const defersEmail = /(?:^|,)\s*respond-async\s*(?:[,;]|$)/i.test(`${request.headers.prefer ?? ''}`.slice(0, 1000))
    const user = await accounts.update(
      callerOf(request), request.params.id, request.body, await matchOf(request), { defersEmail }
    )
    return showTagged(user, request, reply)
  }

  async function onDelete (request: RequestOf<typeof schemas.delete>, reply: ReplyOf<typeof schemas.delete>) {
    await accounts.delete(callerOf(request), request.params.id, await matchOf(request))
    return reply.code(204).send(null)
  }

  async function onExport (request: RequestOf<typeof schemas.export>, reply: ReplyOf<typeof schemas.export>) {
    cutOff(reply)
    const stream = await accounts.export(callerOf(request), idOf(request))
    // A hook of the host may send another response instead.
    onceClosed(reply, () => stream.destroy())
    reply.header('content-disposition', contentDisposition(`user-${idOf(request)}.json`))
    return reply.type('application/json; charset=utf-8').send(stream as never)
  }

  // Returns the versions that the user may have for the preconditions to be true. This runs in the handlers, because
  // what is invalid in the body comes first. A version that a client names in `If-None-Match` never comes back, so a
  // change after this look cannot make it false.
  async function matchOf ({ headers, params, socket }: FastifyRequest): Promise<Match> {
    const match = readIfMatch(headers['if-match'])
    const noneMatch = readIfNoneMatch(headers['if-none-match'])
    if (noneMatch === undefined) return match
    if (noneMatch === '*') return []
    const { rowVersion } = await users.records.versionOf(idOf({ params }), socket)
    return permits(noneMatch, rowVersion) ? [] : match
  }

  // Returns what the actor sees of a user who was changed, and sets the entity tag of it.
  function showTagged (user: UserRow, request: FastifyRequest, reply: FastifyReply) {
    const view = callerOf(request).viewOf(user.id)
    reply.header('etag', view.tagOf(user))
    return view.show(user)
  }

  async function allowCreation (request: FastifyRequest): Promise<void> {
    authorizeCreation(callerOf(request))
  }

  async function allowPatch (request: FastifyRequest): Promise<void> {
    authorizeSomeChange(callerOf(request), idOf(request))
  }

  // The following run before the body is validated, because 403 comes before 400 (contract 1.7). What does not depend
  // on the body was asked before it arrived. The operations ask everything again when they write.
  async function readNewUser (request: FastifyRequest): Promise<void> {
    const caller = callerOf(request)
    authorizeNewRole(caller, request.body)
    request.body = withoutIgnored(userFields, caller, request.body)
  }

  // PUT ignores the member `disabled`.
  async function readReplacement (request: FastifyRequest): Promise<void> {
    const { role } = (request.body ?? {}) as { role?: unknown }
    readChange(request, { role })
  }

  async function readPatch (request: FastifyRequest): Promise<void> {
    const caller = callerOf(request)
    if (hasListedChange(caller)) authorizeChange(caller, idOf(request), request.body)
    readChange(request, request.body)
  }

  function readChange (request: FastifyRequest, authorized: unknown): void {
    const caller = callerOf(request)
    authorizeMembers(caller, idOf(request), authorized)
    request.body = withoutIgnored(userFields, caller, request.body, idOf(request))
  }
}

export default userRoutes
