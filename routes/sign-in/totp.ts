import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { forbidStoring } from '../../plugins/http/requests.ts'
import { ConfirmedTotp, ConfirmTotp, NewTotp, RecoveryCodes, SecondFactor, TotpActive } from '../../schema/sign-in/totp.ts'
import { examples, FAILURES, failures, HEADERS, NoContent, STEP_UP } from '../../schema/http/reply.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'

const route = { tags: ['second-factor'], security: [{ bearer: [] }] }
const schemas = {
  read: {
    ...route,
    operationId: 'getSecondFactors',
    summary: 'Read which second factors the authenticated user has',
    response: { 200: SecondFactor, ...failures(401, 403) },
  },
  start: {
    ...route,
    [HEADERS]: STEP_UP,
    operationId: 'createTotp',
    [FAILURES]: examples(new TotpActive()),
    summary: 'Create a secret for an authenticator app, which has no effect until it is confirmed',
    response: { 200: NewTotp, ...failures(401, 403, 409) },
  },
  confirm: {
    ...route,
    [HEADERS]: STEP_UP,
    operationId: 'confirmTotp',
    [FAILURES]: examples(new TotpActive()),
    summary: 'Activate the authenticator app with its first code, and end every other session',
    body: ConfirmTotp,
    response: { 200: ConfirmedTotp, ...failures(400, 401, 403, 404, 409, 413, 415) },
  },
  remove: {
    ...route,
    [HEADERS]: STEP_UP,
    operationId: 'removeTotp',
    summary: 'Remove the authenticator app and the recovery codes',
    response: { 204: NoContent, ...failures(401, 403, 404) },
  },
  createCodes: {
    ...route,
    [HEADERS]: STEP_UP,
    operationId: 'createRecoveryCodes',
    summary: 'Create new recovery codes, which make the earlier ones void',
    response: { 200: RecoveryCodes, ...failures(401, 403, 404) },
  },
}

/**
 * Adds the routes for authenticator apps and recovery codes (contract 16.4). Their responses contain secrets, so none
 * is stored for an idempotency key.
 */
const totpRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherOptions: options, usherUsers: users,
    usherAccess: { actorOf, authenticateAny, callerOf }, usherSignIn: { credentials, providers, stepUp, totp },
  } = app
  // Also for those who must have a second factor and lack it.
  const read = [authenticateAny, async (request: FastifyRequest) => {
    callerOf(request).authorize('second-factor:read', { ownerId: actorOf(request).id })
  }]
  // Before the body is validated, because 403 comes before 400. The operations ask it again.
  const change = [authenticateAny, async (request: FastifyRequest) => {
    const caller = callerOf(request)
    caller.authorize('second-factor:change')
    await stepUp.require(caller)
  }]
  forbidStoring(app)

  app.get('/auth/second-factor', { schema: schemas.read, onRequest: read }, onRead)
  app.post('/auth/totp', { schema: schemas.start, onRequest: change }, onStart)
  app.post('/auth/totp/confirm', { schema: schemas.confirm, onRequest: change }, onConfirm)
  app.delete('/auth/totp', { schema: schemas.remove, onRequest: change }, onRemove)
  app.post('/auth/recovery-codes', { schema: schemas.createCodes, onRequest: change }, onCreateCodes)

  async function onRead (request: RequestOf<typeof schemas.read>) {
    const caller = callerOf(request)
    const { id } = actorOf(request)
    const [{ passkeys, ...factors }, user, hasSecondFactor, usable] = await Promise.all([
      credentials.list(caller, id), users.records.get(id, request.socket), stepUp.hasSecondFactor(caller),
      providers.stepUpProvidersOf(id),
    ])
    await caller.confirm()
    const mail = options.loginMail && user.emailVerified && !hasSecondFactor
    return { ...factors, passkeys: passkeys.length, mail, providers: usable }
  }

  async function onStart (request: RequestOf<typeof schemas.start>) {
    return totp.start(callerOf(request))
  }

  async function onConfirm (request: RequestOf<typeof schemas.confirm>) {
    return totp.confirm(callerOf(request), request.body.code)
  }

  async function onRemove (request: RequestOf<typeof schemas.remove>, reply: ReplyOf<typeof schemas.remove>) {
    await totp.remove(callerOf(request))
    return reply.code(204).send(null)
  }

  async function onCreateCodes (request: RequestOf<typeof schemas.createCodes>) {
    return { recoveryCodes: await totp.createRecoveryCodes(callerOf(request)) }
  }
}

export default totpRoutes
