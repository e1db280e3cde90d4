import { randomBytes } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { describeTag } from '../../plugins/http/docs.ts'
import { forbidStoring } from '../../plugins/http/requests.ts'
import { addVary } from '../../plugins/http/vary.ts'
import type { StoredResult } from '../../db/idempotency/idempotency.ts'
import { LoginReply } from '../../schema/sign-in/login.ts'
import {
  AddPasskey, CEREMONY_SECONDS, CreationOptions, Passkey, PasskeyList, PasskeyLogin, PasskeyNotFound, RenamePasskey,
  RequestOptions, LastWayToSignIn, PasskeyExists, PasskeysUnavailable, TooManyPasskeys
} from '../../schema/sign-in/passkeys.ts'
import { pageTag } from '../../schema/http/entity-tag.ts'
import { Gone, IDEMPOTENT } from '../../schema/http/idempotency.ts'
import { IdParams, UserPasskeyParams } from '../../schema/http/params.ts'
import { examples, FAILURES, failures, HEADERS, NoContent, NotModified, STEP_UP } from '../../schema/http/reply.ts'
import { revalidate, sendNotModified } from '../http/conditional-request.ts'
import { createOnce } from '../http/idempotency-key.ts'
import { createLogIn } from './password-login.ts'
import { idOf } from '../http/params.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'
import { createCeremonyCookie, createSessionCookie } from '../access/cookies.ts'

/** The maximum size of a body with the response of an authenticator: more than the schemas of all members together. */
export const BODY_BYTES = 64 * 1024

const tags = ['passkeys']
const security = [{ bearer: [] }]
const schemas = {
  creationOptions: {
    tags,
    security,
    [HEADERS]: STEP_UP,
    operationId: 'getPasskeyCreationOptions',
    [FAILURES]: examples(new TooManyPasskeys()),
    summary: 'Get the options with which a browser creates a passkey',
    response: { 200: CreationOptions, ...failures(401, 403, 409) },
  },
  add: {
    tags,
    security,
    [HEADERS]: STEP_UP,
    operationId: 'addPasskey',
    [FAILURES]: examples(new PasskeyExists()),
    summary: 'Add the passkey that a browser has created',
    [IDEMPOTENT]: true,
    body: AddPasskey,
    response: { 201: Passkey, ...failures(400, 401, 403, 409, 410, 413, 415, 422) },
  },
  list: {
    tags,
    security,
    operationId: 'listPasskeys',
    summary: 'List the passkeys of the authenticated user, newest first',
    response: { 200: PasskeyList, 304: NotModified, ...failures(401, 403, 412) },
  },
  rename: {
    tags,
    security,
    operationId: 'renamePasskey',
    summary: 'Rename a passkey',
    params: IdParams,
    body: RenamePasskey,
    response: { 200: Passkey, ...failures(400, 401, 403, 404, 413, 415) },
  },
  remove: {
    tags,
    security,
    [HEADERS]: STEP_UP,
    operationId: 'removePasskey',
    [FAILURES]: examples(new LastWayToSignIn()),
    summary: 'Remove a passkey',
    params: IdParams,
    response: { 204: NoContent, ...failures(401, 403, 404, 409) },
  },
  listOfUser: {
    tags,
    security,
    operationId: 'listUserPasskeys',
    summary: 'List the passkeys of a user, newest first',
    params: IdParams,
    response: { 200: PasskeyList, 304: NotModified, ...failures(401, 403, 404, 412) },
  },
  removeOfUser: {
    tags,
    security,
    [HEADERS]: STEP_UP,
    operationId: 'removeUserPasskey',
    [FAILURES]: examples(new LastWayToSignIn()),
    summary: 'Remove a passkey of a user, and end all sessions of that user',
    params: UserPasskeyParams,
    response: { 204: NoContent, ...failures(401, 403, 404, 409) },
  },
  loginOptions: {
    tags,
    operationId: 'getPasskeyLoginOptions',
    [FAILURES]: examples(new PasskeysUnavailable()),
    summary: 'Get the options with which a browser logs in by passkey',
    [HEADERS]: { 200: ['Set-Cookie'] },
    response: { 200: RequestOptions, ...failures(409, 429) },
  },
  login: {
    tags,
    operationId: 'logInByPasskey',
    [FAILURES]: examples(new PasskeysUnavailable()),
    summary: 'Log in by passkey',
    body: PasskeyLogin,
    [HEADERS]: { 200: ['Set-Cookie'] },
    response: { 200: LoginReply, ...failures(400, 401, 409, 413, 415, 429) },
  },
  stepUpOptions: {
    tags,
    security,
    operationId: 'getStepUpOptions',
    [FAILURES]: examples(new PasskeysUnavailable()),
    summary: 'Get the options with which a browser authenticates the user of the session once more by passkey',
    response: { 200: RequestOptions, ...failures(401, 403, 409) },
  },
}

/** Adds the routes for passkeys, and for logging in by one (contract 16.3). */
const passkeyRoutes: FastifyPluginAsyncTypebox = async (app) => {
  describeTag(app, 'passkeys', 'Passkeys, which replace passwords')
  const {
    usherOptions: { publicPath },
    usherAccess: { actorOf, allow, authenticateAny, authenticateSession, callerOf },
    usherSignIn: { passkeys },
  } = app
  const cookies = await createSessionCookie(app)
  const ceremonies = await createCeremonyCookie(app)
  const { rejectFlood, show } = createLogIn(app, cookies)
  const once = createOnce(app)
  const ownId = (request: FastifyRequest) => actorOf(request).id
  forbidStoring(app)

  // Somebody who must have a second factor may add a passkey without one.
  app.post('/auth/passkeys/options', { schema: schemas.creationOptions, onRequest: authenticateAny }, onCreationOptions)
  app.post('/auth/passkeys', { schema: schemas.add, bodyLimit: BODY_BYTES, onRequest: authenticateAny }, onAdd)
  app.get('/auth/passkeys', {
    schema: schemas.list, exposeHeadRoute: true, onRequest: allow('passkeys:list', ownId),
  }, onList)
  app.patch('/auth/passkeys/:id', { schema: schemas.rename, onRequest: authenticateSession }, onRename)
  app.delete('/auth/passkeys/:id', { schema: schemas.remove, onRequest: allow('passkeys:remove', ownId) }, onRemove)
  app.get('/users/:id/passkeys', {
    schema: schemas.listOfUser, exposeHeadRoute: true, onRequest: allow('passkeys:list', idOf),
  }, onListOfUser)
  app.delete('/users/:id/passkeys/:passkeyId', {
    schema: schemas.removeOfUser, onRequest: allow('passkeys:remove', idOf),
  }, onRemoveOfUser)
  app.post('/auth/login/passkey/options', { schema: schemas.loginOptions, onRequest: rejectFlood }, onLoginOptions)
  app.post('/auth/login/passkey', { schema: schemas.login, bodyLimit: BODY_BYTES, onRequest: rejectFlood }, onLogin)
  app.post('/auth/step-up/options', { schema: schemas.stepUpOptions, onRequest: authenticateAny }, onStepUpOptions)

  async function onCreationOptions (request: RequestOf<typeof schemas.creationOptions>) {
    return passkeys.creationOptions(callerOf(request), passkeys.relyingParty.of(request))
  }

  async function onAdd (request: RequestOf<typeof schemas.add>, reply: ReplyOf<typeof schemas.add>) {
    const { name, credential } = request.body
    const party = passkeys.relyingParty.of(request)
    const caller = callerOf(request)
    const added = await once(request, reply, { content: { name, credential } }, {
      operate: (key) => passkeys.add(caller, { name, credential, party }, key),
      restore: ({ recordId }: StoredResult) => passkeys.get(caller, recordId!)
        .catch((error) => { throw error instanceof PasskeyNotFound ? new Gone() : error }),
    })
    return reply.code(201).header('location', `${publicPath}/api/auth/passkeys/${added.id}`).send(added)
  }

  async function onList (request: RequestOf<typeof schemas.list>, reply: ReplyOf<typeof schemas.list>) {
    return list(actorOf(request).id, request, reply)
  }

  async function onListOfUser (
    request: RequestOf<typeof schemas.listOfUser>, reply: ReplyOf<typeof schemas.listOfUser>
  ) {
    return list(idOf(request), request, reply)
  }

  async function onRename (request: RequestOf<typeof schemas.rename>) {
    return passkeys.rename(callerOf(request), idOf(request), request.body.name)
  }

  async function onRemove (request: RequestOf<typeof schemas.remove>, reply: ReplyOf<typeof schemas.remove>) {
    await passkeys.remove(callerOf(request), actorOf(request).id, idOf(request))
    return reply.code(204).send(null)
  }

  async function onRemoveOfUser (
    request: RequestOf<typeof schemas.removeOfUser>, reply: ReplyOf<typeof schemas.removeOfUser>
  ) {
    await passkeys.remove(callerOf(request), idOf(request), request.params.passkeyId.toLowerCase())
    return reply.code(204).send(null)
  }

  async function onLoginOptions (
    request: RequestOf<typeof schemas.loginOptions>, reply: ReplyOf<typeof schemas.loginOptions>
  ) {
    const party = passkeys.relyingParty.of(request)
    // Tabs of a browser share it, so that one does not break the ceremony of another.
    const [browser = randomBytes(32).toString('base64url')] = ceremonies.read(request)
    ceremonies.set(reply, browser, CEREMONY_SECONDS)
    return passkeys.loginOptions(party, browser)
  }

  async function onLogin (request: RequestOf<typeof schemas.login>, reply: ReplyOf<typeof schemas.login>) {
    const loggedIn = await passkeys.logIn(callerOf(request, { actor: null }), {
      credential: request.body.credential,
      party: passkeys.relyingParty.of(request),
      bindings: ceremonies.read(request),
      // The login ends the session of the cookie that the browser has. Only pages of allowed origins may cause that.
      replaced: cookies.serves(request) ? cookies.read(request) : undefined,
    })
    cookies.set(reply, loggedIn.cookie, loggedIn.expiresAt)
    return show(loggedIn)
  }

  async function onStepUpOptions (request: RequestOf<typeof schemas.stepUpOptions>) {
    return passkeys.stepUpOptions(callerOf(request), passkeys.relyingParty.of(request))
  }

  // Passkeys have no versions, and there are few of them.
  async function list (userId: string, request: FastifyRequest, reply: FastifyReply) {
    const listed = await passkeys.list(callerOf(request), userId)
    addVary(reply, 'Authorization')
    const tag = pageTag(listed.map((row) => ({ ...row, backedUp: `${row.backedUp}` })), 'passkeys 1')
    return revalidate(request, reply, tag) ? sendNotModified(request, reply) : listed
  }
}

export default passkeyRoutes
