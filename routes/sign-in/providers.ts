import { randomBytes } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { CallbackFailure, type Completed } from '../../plugins/sign-in/providers/index.ts'
import type { OpenedAttempt } from '../../plugins/sign-in/providers/attempts.ts'
import { reasonOf } from '../../plugins/sign-in/providers/reasons.ts'
import { createChallengeCookie, createProviderCookie, createSessionCookie, createSignUpCookie } from '../access/cookies.ts'
import { describeTag } from '../../plugins/http/docs.ts'
import { translate } from '../../plugins/http/errors.ts'
import { forbidStoring } from '../../plugins/http/requests.ts'
import { addVary } from '../../plugins/http/vary.ts'
import {
  BackChannelLogout, BeginProvider, BegunProvider, EmailUnproven, IdentityList, InvalidState, JoinByProvider,
  LinkRequired, LoggedOut, ProviderList, ProviderNotFound, ProviderRejected, ProviderResponse, RETURN_TO_CHARACTERS,
  StartProvider, STATE_SECONDS, type Provider,
} from '../../schema/sign-in/providers.ts'
import { LastWayToSignIn } from '../../schema/sign-in/passkeys.ts'
import { SecondFactorRequired } from '../../schema/sign-in/second-factor.ts'
import { combinedTag, pageTag } from '../../schema/http/entity-tag.ts'
import { InvalidInput, TooManyRequests } from '../../schema/http/errors.ts'
import { IdParams, UserIdentityParams } from '../../schema/http/params.ts'
import {
  examples, FAILURES, failures, HEADERS, NoContent, NotModified, Redirect, STEP_UP,
} from '../../schema/http/reply.ts'
import { REJECTED } from '../../schema/options/page-texts.ts'
import { revalidate, sendNotModified } from '../http/conditional-request.ts'
import { addFormParser, FORM, rejectOtherForms } from '../http/form-parser.ts'
import { createLogIn } from './password-login.ts'
import { idOf } from '../http/params.ts'
import { createReturnTo } from '../http/return-to.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'

// More than the schemas of all members together.
const BODY_BYTES = 64 * 1024
// The head of a request may have 16 KiB, and the cookies and other headers of a browser need some of them.
const CALLBACK_CHARACTERS = 12 * 1024
const REASON_CHARACTERS = 500
// An attempt has the time of the node's estimate of the clock of the database.
const CLOCK_TOLERANCE_MS = 1000

/** What is known about an attempt that has failed. */
type Begun = Pick<OpenedAttempt, 'intent' | 'returnTo'>

const tags = ['providers']
const security = [{ bearer: [] }]
const schemas = {
  list: {
    tags,
    operationId: 'listProviders',
    summary: 'List the providers with which users sign in',
    response: { 200: ProviderList, 304: NotModified, ...failures(412) },
  },
  start: {
    tags,
    operationId: 'startProviderLogin',
    summary: 'Send the browser to a provider, to log in there',
    params: IdParams,
    querystring: StartProvider,
    [HEADERS]: { 303: ['Set-Cookie'] },
    response: { 303: Redirect, ...failures(400, 401, 404, 429) },
  },
  callback: {
    tags,
    operationId: 'completeProviderLogin',
    [FAILURES]: examples(new InvalidState(), new LinkRequired()),
    summary: 'Take what a provider says about a login, and send the browser to where it began',
    params: IdParams,
    querystring: ProviderResponse,
    [HEADERS]: { 303: ['Set-Cookie'] },
    response: { 303: Redirect, ...failures(400, 401, 403, 404, 409, 429) },
  },
  post: {
    tags,
    operationId: 'receiveProviderForm',
    summary: 'Take the same from a provider that sends a form, and send the browser to GET with it',
    params: IdParams,
    consumes: [FORM],
    body: ProviderResponse,
    response: { 303: Redirect, ...failures(400, 401, 404, 413, 415) },
  },
  link: {
    tags,
    security,
    [HEADERS]: { 200: ['Set-Cookie'], ...STEP_UP },
    operationId: 'startProviderLink',
    summary: 'Get the address at a provider that links an identity to the account of the authenticated user',
    params: IdParams,
    body: BeginProvider,
    response: { 200: BegunProvider, ...failures(400, 401, 403, 404, 413, 415) },
  },
  join: {
    tags,
    [HEADERS]: { 200: ['Set-Cookie'] },
    operationId: 'startProviderJoin',
    summary: 'Get the address at a provider that accepts an invitation to an organisation with a new account',
    params: IdParams,
    body: JoinByProvider,
    response: { 200: BegunProvider, ...failures(400, 403, 404, 413, 415, 429) },
  },
  stepUp: {
    tags,
    security,
    [HEADERS]: { 200: ['Set-Cookie'] },
    operationId: 'startProviderStepUp',
    summary: 'Get the address at a provider that authenticates the user of the session once more',
    params: IdParams,
    body: BeginProvider,
    response: { 200: BegunProvider, ...failures(400, 401, 403, 404, 413, 415) },
  },
  logout: {
    tags,
    operationId: 'receiveProviderLogout',
    summary: 'End the sessions that a provider has ended (OpenID Connect Back-Channel Logout)',
    params: IdParams,
    consumes: [FORM],
    body: BackChannelLogout,
    response: { 200: LoggedOut, ...failures(400, 404, 413, 415, 429) },
  },
  listIdentities: {
    tags,
    security,
    operationId: 'listIdentities',
    summary: 'List the identities of the authenticated user at providers, newest first',
    response: { 200: IdentityList, 304: NotModified, ...failures(401, 403, 412) },
  },
  removeIdentity: {
    tags,
    security,
    [HEADERS]: STEP_UP,
    operationId: 'removeIdentity',
    [FAILURES]: examples(new LastWayToSignIn()),
    summary: 'Remove an identity at a provider',
    params: IdParams,
    response: { 204: NoContent, ...failures(401, 403, 404, 409) },
  },
  listOfUser: {
    tags,
    security,
    operationId: 'listUserIdentities',
    summary: 'List the identities of a user at providers, newest first',
    params: IdParams,
    response: { 200: IdentityList, 304: NotModified, ...failures(401, 403, 404, 412) },
  },
  removeOfUser: {
    tags,
    security,
    [HEADERS]: STEP_UP,
    operationId: 'removeUserIdentity',
    [FAILURES]: examples(new LastWayToSignIn()),
    summary: 'Remove an identity of a user at a provider, and end all sessions of that user',
    params: UserIdentityParams,
    response: { 204: NoContent, ...failures(401, 403, 404, 409) },
  },
}

/** Adds the routes for signing in by providers, and for the identities of users there (contract 16.5). */
const providerRoutes: FastifyPluginAsyncTypebox = async (app) => {
  describeTag(app, 'providers', 'Logins with the account of another service')
  const {
    usherOptions: options, usherAudit: audit, usherAccounts: { newUsers },
    usherAccess: { actorOf, allow, authenticateAny, authenticateSession, callerOf, sessions },
    usherSignIn: { providers },
  } = app
  const { publicPath } = options
  const hasPages = options.pages.enabled && !options.without.includes('pages')
  const cookies = await createSessionCookie(app)
  const browsers = await createProviderCookie(app)
  const challenges = await createChallengeCookie(app)
  const signUpCookie = await createSignUpCookie(app)
  const { rejectFlood } = createLogIn(app, cookies)
  const readReturnTo = createReturnTo(options)
  const ownId = (request: FastifyRequest) => actorOf(request).id
  forbidStoring(app)

  const silent = { exposeHeadRoute: false } as const
  app.get('/auth/providers', { schema: schemas.list, exposeHeadRoute: true }, onList)
  // A login does not need `returnTo`, so a malformed one does not stop it.
  app.get('/auth/providers/:id/start', {
    ...silent, schema: schemas.start, attachValidation: true, onRequest: rejectFlood,
  }, onStart)
  // What a provider sends is validated by the handler, because the browser of a user shows what comes of it.
  app.get('/auth/providers/:id/callback', {
    ...silent, schema: schemas.callback, attachValidation: true, onRequest: rejectFlood,
  }, onCallback)
  app.post('/auth/providers/:id/link', { schema: schemas.link, onRequest: authenticateSession }, onLink)
  if (options.organizations) {
    app.post('/auth/providers/:id/join', { schema: schemas.join, onRequest: rejectFlood }, onJoin)
  }
  app.post('/auth/providers/:id/step-up', { schema: schemas.stepUp, onRequest: authenticateAny }, onStepUp)
  app.get('/auth/identities', {
    schema: schemas.listIdentities, exposeHeadRoute: true, onRequest: allow('identities:list', ownId),
  }, onListIdentities)
  app.delete('/auth/identities/:id', {
    schema: schemas.removeIdentity, onRequest: allow('identities:remove', ownId),
  }, onRemoveIdentity)
  app.get('/users/:id/identities', {
    schema: schemas.listOfUser, exposeHeadRoute: true, onRequest: allow('identities:list', idOf),
  }, onListOfUser)
  app.delete('/users/:id/identities/:identityId', {
    schema: schemas.removeOfUser, onRequest: allow('identities:remove', idOf),
  }, onRemoveOfUser)
  await app.register(async (forms: FastifyInstance) => {
    addFormParser(forms, BODY_BYTES)
    rejectOtherForms(forms)
    const limits = { bodyLimit: BODY_BYTES }
    forms.post('/auth/providers/:id/callback', { ...limits, schema: schemas.post, attachValidation: true }, onPost)
    forms.post('/auth/providers/:id/logout', { ...limits, schema: schemas.logout, onRequest: rejectFlood }, onLogout)
  })

  async function onList (request: RequestOf<typeof schemas.list>, reply: ReplyOf<typeof schemas.list>) {
    const list = providers.list()
    const tag = combinedTag(['providers 1', ...list.map(({ id, name }: Provider) => JSON.stringify([id, name]))])
    return revalidate(request, reply, tag) ? sendNotModified(request, reply) : list
  }

  async function onStart (request: RequestOf<typeof schemas.start>, reply: ReplyOf<typeof schemas.start>) {
    const { id } = request.params
    const browser = browserOf(request)
    // Nobody is kept from logging in by where they would be led afterwards.
    const returnTo = request.validationError ? undefined : readReturnTo(request.query.returnTo)
    if (returnTo === undefined && request.query.returnTo !== undefined) {
      app.log.debug({ provider: id }, 'A login goes on without its returnTo, which is malformed, not allowed or too long')
    }
    try {
      const url = await providers.begin(id, browser, returnTo)
      browsers.set(reply, browser, STATE_SECONDS)
      return redirect(reply, url)
    } catch (error) {
      return fail(request, reply, error as Error, { intent: 'login', returnTo })
    }
  }

  async function onLink (request: RequestOf<typeof schemas.link>, reply: ReplyOf<typeof schemas.link>) {
    return begin('link', request, reply)
  }

  async function onJoin (request: RequestOf<typeof schemas.join>, reply: ReplyOf<typeof schemas.join>) {
    const { params: { id }, body: { token, returnTo } } = request
    const browser = browserOf(request)
    const hash = await app.usherOrganizations.invitations.prepareJoin(token)
    const url = await providers.beginJoin(id, browser, returnToOf(returnTo), hash)
    browsers.set(reply, browser, STATE_SECONDS)
    return { url }
  }

  async function onStepUp (request: RequestOf<typeof schemas.stepUp>, reply: ReplyOf<typeof schemas.stepUp>) {
    return begin('step-up', request, reply)
  }

  async function begin (
    intent: 'link' | 'step-up',
    request: FastifyRequest & Pick<RequestOf<typeof schemas.link>, 'params' | 'body'>, reply: FastifyReply
  ) {
    const { params: { id }, body: { returnTo } } = request
    const browser = browserOf(request)
    const url = await providers.beginFor(callerOf(request), intent, id, browser, returnToOf(returnTo))
    browsers.set(reply, browser, STATE_SECONDS)
    return { url }
  }

  // The cookie is `SameSite=Lax`, so browsers do not send it with the form of another site. They do with the GET that
  // follows, since the user sees where it goes. Nothing happens before that.
  async function onPost (request: RequestOf<typeof schemas.post>, reply: ReplyOf<typeof schemas.post>) {
    const { params: { id }, body, validationError } = request
    if (!providers.ids.includes(id) || validationError) return fail(request, reply, rejectionOf(id, validationError))
    const { state, code, iss, error, user } = body
    const urlOf = (user?: string) =>
      `${publicPath}/api/auth/providers/${id}/callback${queryOf({ state, code, iss, error, user })}`
    // A login does not need the name: without it, a new user gets one from the address.
    const urls = [...typeof user === 'string' ? [urlOf(user)] : [], urlOf()]
    const url = urls.find(({ length }) => length <= CALLBACK_CHARACTERS)
    if (url === undefined) {
      const cause = new Error(`the members of the form are an address of more than ${CALLBACK_CHARACTERS} characters`)
      return fail(request, reply, new ProviderRejected({ cause }))
    }
    return redirect(reply, url)
  }

  async function onCallback (request: RequestOf<typeof schemas.callback>, reply: ReplyOf<typeof schemas.callback>) {
    const { params: { id: provider }, query: response, validationError } = request
    if (validationError) return fail(request, reply, rejectionOf(provider, validationError))
    const caller = callerOf(request, { actor: null, via: 'provider' })
    const callback = { provider, response, browsers: browsers.read(request), replaced: cookies.read(request) }
    try {
      const completed = await providers.complete(caller, callback, {
        create: (user, inTransaction) => newUsers.createByProvider(caller, user, inTransaction),
        signUp: (user, identity) => newUsers.signUpByProvider(caller, user, identity),
        join: (hash, user, inTransaction) =>
          app.usherOrganizations.invitations.acceptByProvider(caller, hash, user, inTransaction),
      })
      return succeed(reply, completed)
    } catch (error) {
      if (!(error instanceof CallbackFailure)) throw error
      const { cause, attempt } = error
      if (attempt && cause instanceof InvalidState && await hasSucceeded(attempt, request)) {
        return succeed(reply, { intent: attempt.intent, returnTo: attempt.returnTo, loggedIn: undefined })
      }
      return fail(request, reply, cause, attempt)
    }
  }

  // A browser may open the address twice: by a second click at the provider, a reload, or going back. The attempt is
  // used up then, but what it was for has happened if the session of the browser was authenticated, or its user got an
  // identity, since it began.
  async function hasSucceeded (attempt: OpenedAttempt, request: FastifyRequest): Promise<boolean> {
    const { intent, begunAt, sessionId } = attempt
    const cookie = cookies.read(request)
    const session = cookie && await sessions.find(cookie)
    if (!session || (sessionId !== undefined && session.sessionId !== sessionId)) return false
    const since = begunAt - CLOCK_TOLERANCE_MS
    return intent === 'link' ? providers.hasLinked(attempt, since) : session.authTime.getTime() >= since
  }

  async function onLogout (request: RequestOf<typeof schemas.logout>) {
    await providers.logOut(callerOf(request, { actor: null }), request.params.id, request.body.logout_token)
      .catch((error) => {
        // Back-Channel Logout 1.0, 2.8: a token that is not valid is a bad request, whoever has sent it.
        throw error instanceof ProviderRejected ? new InvalidInput('logout_token is not valid') : error
      })
    return {}
  }

  async function onListIdentities (
    request: RequestOf<typeof schemas.listIdentities>, reply: ReplyOf<typeof schemas.listIdentities>
  ) {
    return list(actorOf(request).id, request, reply)
  }

  async function onListOfUser (
    request: RequestOf<typeof schemas.listOfUser>, reply: ReplyOf<typeof schemas.listOfUser>
  ) {
    return list(idOf(request), request, reply)
  }

  async function onRemoveIdentity (
    request: RequestOf<typeof schemas.removeIdentity>, reply: ReplyOf<typeof schemas.removeIdentity>
  ) {
    await providers.removeIdentity(callerOf(request), actorOf(request).id, idOf(request))
    return reply.code(204).send(null)
  }

  async function onRemoveOfUser (
    request: RequestOf<typeof schemas.removeOfUser>, reply: ReplyOf<typeof schemas.removeOfUser>
  ) {
    await providers.removeIdentity(callerOf(request), idOf(request), request.params.identityId.toLowerCase())
    return reply.code(204).send(null)
  }

  // Identities have no versions, and there are few of them.
  async function list (userId: string, request: FastifyRequest, reply: FastifyReply) {
    const listed = await providers.listIdentities(callerOf(request), userId)
    addVary(reply, 'Authorization')
    const tag = pageTag(listed, 'identities 1')
    return revalidate(request, reply, tag) ? sendNotModified(request, reply) : listed
  }

  // Tabs of a browser share the secret, so that one does not break the login of another.
  function browserOf (request: FastifyRequest): string {
    const [browser = randomBytes(32).toString('base64url')] = browsers.read(request)
    return browser
  }

  // It becomes a part of the state, whose length providers limit, with its characters encoded as in an address.
  const returnToOf = (given: string | undefined): string | undefined => readReturnTo(given, () => {
    throw new InvalidInput(`returnTo must be at most ${RETURN_TO_CHARACTERS} characters`)
  })

  function rejectionOf (provider: string, validationError: unknown): Error {
    if (!providers.ids.includes(provider)) return new ProviderNotFound()
    return new ProviderRejected({ cause: validationError })
  }

  // Browsers tell nobody the address that has redirected them, which has the code.
  const redirect = (reply: FastifyReply, url: string) => reply.code(303).header('location', url).send()

  function succeed (reply: FastifyReply, { loggedIn, returnTo }: Completed) {
    if (loggedIn) cookies.set(reply, loggedIn.cookie, loggedIn.expiresAt)
    return redirect(reply, returnTo ?? (hasPages ? `${publicPath}/account` : `${publicPath}/`))
  }

  // A browser goes to a page that says what went wrong: the login, or where it began. Without either, the response is
  // that of the API.
  function fail (request: FastifyRequest, reply: FastifyReply, cause: Error, attempt?: Begun) {
    const error = translate(cause as Parameters<typeof translate>[0])
    const target = targetOf(error, attempt)
    if (!(error instanceof SecondFactorRequired)) {
      const { id: provider } = request.params as { id: string }
      const reason = reasonOf(error, REASON_CHARACTERS)
      const details = { provider, intent: attempt?.intent, code: codeOf(error), reason }
      request.log.info(details, 'A login at a provider has stopped')
    }
    if (target === undefined) throw error
    if (error.statusCode === 500) request.log.error({ err: error.cause ?? error }, error.message)
    if (error instanceof TooManyRequests) audit.addRejection(callerOf(request, { actor: null }), 429)
    if (error instanceof EmailUnproven) signUpCookie.set(reply, error.signUpId)
    if (error instanceof SecondFactorRequired && hasPages) {
      const { challenge, methods } = error
      challenges.set(reply, `${challenge}`, methods)
    }
    return redirect(reply, target)
  }

  function targetOf (error: Error & { code?: string }, attempt: Begun | undefined): string | undefined {
    const { intent = 'login', returnTo } = attempt ?? {}
    if (error instanceof SecondFactorRequired) {
      const { challenge, methods } = error
      if (hasPages) return `${publicPath}/login/second-factor${queryOf({ returnTo })}`
      // A fragment is sent to no server.
      const proof = new URLSearchParams({ error: error.code, challenge: `${challenge}`, methods: methods.join(' ') })
      return returnTo && `${returnTo.split('#', 1)[0]}#${proof}`
    }
    const code = codeOf(error)
    if (intent === 'login' && hasPages) return `${publicPath}/login${queryOf({ error: code, returnTo })}`
    if (intent === 'join' && hasPages) return `${publicPath}/join${queryOf({ error: code })}`
    const target = returnTo ?? (hasPages ? `${publicPath}/account` : undefined)
    return target && withError(target, code)
  }
}

// A hook of the host may have thrown anything.
const codeOf = ({ code }: { code?: string }): string => /^\w{1,100}$/.test(`${code ?? ''}`) ? `${code}` : REJECTED

function queryOf (parameters: Record<string, string | undefined>): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined) as [string, string][]
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}

/** Returns an address with the parameter `error`. */
function withError (target: string, code: string): string {
  const here = 'http://here.invalid'
  const url = new URL(target, here)
  url.searchParams.set('error', code)
  return url.origin === here ? url.href.slice(here.length) : url.href
}

export default providerRoutes
