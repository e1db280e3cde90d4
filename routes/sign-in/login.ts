import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { clientInfoOf } from '../../plugins/http/client-info.ts'
import { requireMembership } from '../../plugins/access/memberships.ts'
import { requireSession } from '../../plugins/access/policy.ts'
import { forbidStoring } from '../../plugins/http/requests.ts'
import { SessionRequired } from '../../schema/sign-in/api-keys.ts'
import { InvalidToken, Login, LoginReply, ProtectedReply, RefreshReply, TokenRequest, Unauthenticated } from '../../schema/sign-in/login.ts'
import { LoginFailure } from '../../schema/sign-in/second-factor.ts'
import { InvalidSession } from '../../schema/access/sessions.ts'
import { OriginNotAllowed } from '../../schema/http/errors.ts'
import { failures, HEADERS, NoContent, OPTIONAL_BODY } from '../../schema/http/reply.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'
import { createLogIn } from './password-login.ts'
import { createSessionCookie } from '../access/cookies.ts'
import { describeTag } from '../../plugins/http/docs.ts'

const tags = ['auth']
const security = [{ bearer: [] }]
const SET_COOKIE = ['Set-Cookie']
const schemas = {
  login: {
    tags,
    operationId: 'logIn',
    summary: 'Log in',
    body: Login,
    [HEADERS]: { 200: SET_COOKIE },
    response: { 200: LoginReply, ...failures(400, 413, 415, 429), 401: LoginFailure },
  },
  refresh: {
    tags,
    security: [{ session: [] }],
    operationId: 'refreshSession',
    summary: 'Get a new access token and a new session cookie',
    [HEADERS]: { 200: SET_COOKIE, 401: SET_COOKIE, 500: SET_COOKIE, 503: SET_COOKIE },
    response: { 200: RefreshReply, ...failures(401, 403, 429) },
  },
  // With the option `organizations`.
  refreshFor: {
    tags,
    security: [{ session: [] }],
    operationId: 'refreshSession',
    summary: 'Get a new access token, for an organisation or for none, and a new session cookie',
    body: TokenRequest,
    [OPTIONAL_BODY]: true,
    [HEADERS]: { 200: SET_COOKIE, 401: SET_COOKIE, 404: SET_COOKIE, 500: SET_COOKIE, 503: SET_COOKIE },
    response: { 200: RefreshReply, ...failures(400, 401, 403, 404, 413, 415, 429) },
  },
  logout: {
    tags,
    security: [...security, { session: [] }],
    operationId: 'logOut',
    summary: 'Log out: end the session on every node',
    [HEADERS]: { 204: SET_COOKIE },
    response: { 204: NoContent, ...failures(401, 403) },
  },
  protected: {
    tags,
    security,
    operationId: 'getCurrentUser',
    summary: 'Read the authenticated user',
    response: { 200: ProtectedReply, ...failures(401, 403) },
  },
}

/** Adds the routes for login, refresh and logout, and the protected route (contract 4.1, 4.2, 4.3, 4.8). */
const authRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherUsers: users, usherAudit: audit, usherOptions: options,
    usherAccess: { actors, authenticate, authenticateAny, callerOf, claims, readerOf, sessions },
    usherSignIn: { login }, usherThrottle: throttle,
  } = app
  const cookies = await createSessionCookie(app)
  const { rejectFlood, logIn, show } = createLogIn(app, cookies)
  describeTag(app, 'auth', 'Login, sessions, passwords and tokens')
  forbidStoring(app)

  app.post('/auth/login', { schema: schemas.login, onRequest: rejectFlood }, onLogin)
  if (options.organizations) app.post('/auth/refresh', { schema: schemas.refreshFor, onRequest: requireCookie }, onRefreshFor)
  else app.post('/auth/refresh', { schema: schemas.refresh, onRequest: requireCookie }, onRefresh)
  app.post('/auth/logout', { schema: schemas.logout, onRequest: authenticateLogout }, onLogout)
  app.get('/auth/pages/session', { schema: { hide: true } }, onReadHint)
  app.get('/protected', { schema: schemas.protected, onRequest: authenticate }, onReadProtected)

  async function onLogin (request: RequestOf<typeof schemas.login>, reply: ReplyOf<typeof schemas.login>) {
    return show(await logIn(request, reply, request.body))
  }

  async function onRefresh (request: RequestOf<typeof schemas.refresh>, reply: ReplyOf<typeof schemas.refresh>) {
    return refresh(request, reply)
  }

  async function onRefreshFor (
    request: RequestOf<typeof schemas.refreshFor>, reply: ReplyOf<typeof schemas.refreshFor>
  ) {
    return refresh(request, reply, request.body.organizationId)
  }

  async function refresh (request: FastifyRequest, reply: FastifyReply, organizationId?: string) {
    const origin = clientInfoOf(request)
    const charged = await throttle.refresh({ ...origin, client: request.socket })
    const session = await sessions.refresh(cookies.read(request)!, origin, organizationId).catch((error) => {
      charged.refundLater()
      throw error
    })
    if (!session) throw invalidSession(reply)
    await charged.refund()
    // Even if the user is no member, or the host's function fails: the former cookie stops working.
    cookies.set(reply, session.cookie, session.expiresAt)
    const organization = requireMembership(options, session.organization, organizationId)
    const added = await claims.of(session.user)
    // The session may have ended meanwhile, and its user's data are not for the client any more.
    if (!await sessions.exists(session.id)) throw invalidSession(reply)
    return show({ ...session, ...login.sign(session, session.user, added, organization) })
  }

  async function onLogout (request: RequestOf<typeof schemas.logout>, reply: ReplyOf<typeof schemas.logout>) {
    const actor = actors.in(request)
    const entry = { ...audit.contextOf(callerOf(request)), action: 'logout', byUser: true } as const
    if (actor) await sessions.end({ id: requireSession(actor) }, entry)
    if (cookies.serves(request)) {
      // The browser loses its cookie, so the session of the cookie ends as well, if it is another one: nobody could end
      // it later, and a copy of the cookie would work on.
      for (const cookie of cookies.readAll(request)) {
        if (cookie.id !== actor?.sessionId) await sessions.end(cookie, entry)
      }
      cookies.clear(reply)
    }
    return reply.code(204).send(null)
  }

  // Whether pages shall continue a session: without it, each anonymous visitor would cause a refresh that fails. The
  // cookie is for the auth routes only. What it is worth, the page finds out by a refresh.
  async function onReadHint (request: FastifyRequest) {
    return { isSent: cookies.serves(request) && cookies.isSent(request), hasLogin: options.pages.enabled }
  }

  async function onReadProtected (request: RequestOf<typeof schemas.protected>) {
    const caller = readerOf(request)
    const user = await users.getOwn(caller)
    // The user was deleted after the token was verified.
    if (!user) throw new InvalidToken()
    return { user: caller.viewOf(user.id).show(user) }
  }

  function invalidSession (reply: FastifyReply): Error {
    cookies.clear(reply)
    return new InvalidSession()
  }

  // Either a bearer token or the cookie is enough. An `Authorization` that is unusable, such as an expired token or the
  // credentials of a proxy, does not keep the cookie from working. The cookie is accepted only from an allowed origin,
  // so that no other page can log a user out.
  async function authenticateLogout (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (request.headers.authorization) {
      try {
        return await authenticateAny(request, reply)
      } catch (error) {
        // An API key logs nobody out.
        const isUnusable = (error as FastifyError).statusCode === 401 || error instanceof SessionRequired
        if (!isUnusable || !cookies.isSent(request)) throw error
        reply.removeHeader('www-authenticate')
      }
    }
    if (!cookies.isSent(request)) throw new Unauthenticated()
    if (!cookies.serves(request)) throw new OriginNotAllowed()
  }

  async function requireCookie (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const serves = cookies.serves(request)
    if (cookies.isSent(request) && !serves) throw new OriginNotAllowed()
    if (cookies.read(request)) return
    // A form on a page of another site sends no cookie (SameSite=Lax). The response to it must not clear the browser's
    // cookie.
    throw serves ? invalidSession(reply) : new InvalidSession()
  }
}

export default authRoutes
