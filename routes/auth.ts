import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { UserRow } from '../db/tables.ts'
import { findCredentials, updatePasswordHash } from '../db/users.ts'
import { clientInfoOf } from '../plugins/client-info.ts'
import { forbidStoring } from '../plugins/http.ts'
import type { OpenSession } from '../plugins/auth/sessions.ts'
import type { LoginAttempt } from '../plugins/auth/throttle.ts'
import { Login, LoginReply, ProtectedReply, RefreshReply } from '../schema/auth.ts'
import { InvalidCredentials, InvalidSession, InvalidToken, OriginNotAllowed, Unauthenticated } from '../schema/errors.ts'
import { failures, NoContent } from '../schema/reply.ts'
import { createCookies } from './session-cookie.ts'

/** Login, refresh, logout and the protected route (contract 4). */
const auth: FastifyPluginAsyncTypebox = async (app) => {
  const { usherDatabase: { db, read, clock }, usherAuth, usherTokens: tokens, usherSessions: sessions, usherPasswords: passwords } = app
  const { usherThrottle: throttle, usherAudit: audit } = app
  const cookies = await createCookies(app)
  forbidStoring(app)
  const tags = ['auth']
  const security = [{ bearer: [] }]

  app.post('/auth/login', {
    onRequest: ({ ip: address, socket: client }) => throttle.refuseFlood({ address, client }),
    schema: { tags, summary: 'Log in', body: Login, response: { 200: LoginReply, ...failures(400, 401, 413, 415, 429) } },
  }, async (request, reply) => {
    const { email, password } = request.body
    const origin = clientInfoOf(request)
    const { address } = origin
    const attempt = await throttle.login({ email, address, client: request.socket })
    try {
      const user = await verify(request, email, password, attempt)
      // Only from an origin that the cookie serves: no other page may end the session that it belongs to.
      const replaced = cookies.serves(request) ? cookies.read(request) : undefined
      const session = await sessions.start({ userId: user.id, passwordHash: user.passwordHash, replaced, ...origin })
      await attempt.succeeded()
      return enter(reply, session, { ...user, role: session.role })
    } catch (error) {
      if (!(error instanceof InvalidCredentials)) attempt.withdraw()
      throw error
    }
  })

  app.post('/auth/refresh', {
    onRequest: requireCookie,
    schema: { tags, security: [{ session: [] }], summary: 'Get another token, and another cookie', response: { 200: RefreshReply, ...failures(401, 403, 429) } },
  }, async (request, reply) => {
    const origin = clientInfoOf(request)
    const attempt = await throttle.refresh({ ...origin, client: request.socket })
    const session = await sessions.refresh(cookies.read(request)!, origin).catch((error) => {
      attempt.withdraw()
      throw error
    })
    if (!session) throw refuse(reply)
    await attempt.succeeded()
    return enter(reply, session, session.user)
  })

  app.post('/auth/logout', {
    onRequest: authenticateLogout,
    schema: { tags, security: [{ bearer: [] }, { session: [] }], summary: 'Log out: the session ends on every node', response: { 204: NoContent, ...failures(401, 403) } },
  }, async (request, reply) => {
    const session = request.actor ? { id: request.actor.sessionId } : cookies.read(request)
    if (session) await sessions.end(session, { ...audit.contextOf(request), action: 'logout', byUser: true })
    cookies.clear(reply)
    return reply.code(204).send(null)
  })

  app.get('/protected', {
    onRequest: usherAuth.authenticate,
    schema: { tags, security, summary: 'Read the actor', response: { 200: ProtectedReply, ...failures(401) } },
  }, async ({ actor, socket }) => {
    const user = await read.user(actor!.id, socket)
    // Deleted between the check of the token and now.
    if (!user) throw new InvalidToken()
    return { user }
  })

  // An unknown address takes the same time as a wrong password.
  async function verify (request: FastifyRequest, email: string, password: string, attempt: LoginAttempt): Promise<UserRow & { passwordHash: string }> {
    const user = await findCredentials(db, email)
    if (!await passwords.verify(password, user?.passwordHash, request.socket)) {
      await Promise.all([attempt.failed(), audit.add(request, { action: 'login.failed', userId: user?.id })])
      throw new InvalidCredentials()
    }
    const { passwordHash } = user as { passwordHash: string }
    if (!passwords.isOutdated(passwordHash)) return { ...user!, passwordHash }
    const renewed = await passwords.hash(password)
    if (await updatePasswordHash(db, user!.id, passwordHash, renewed)) return { ...user!, passwordHash: renewed }
    // By another login, mostly.
    return verify(request, email, password, attempt)
  }

  function refuse (reply: FastifyReply): Error {
    cookies.clear(reply)
    return new InvalidSession()
  }

  function enter (reply: FastifyReply, { id, cookie, expiresAt }: OpenSession, user: UserRow) {
    cookies.set(reply, cookie, expiresAt)
    const token = tokens.sign({ id: user.id, role: user.role, sessionId: id }, { expiresAt })
    const expiresIn = Math.min(tokens.lifetime, Math.floor((expiresAt.getTime() - clock.now()) / 1000))
    return { token, tokenType: 'Bearer', expiresIn, user }
  }

  // By the token where there is one; by the cookie only for an origin that it serves.
  async function authenticateLogout (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    if (request.headers.authorization) return usherAuth.authenticate(request, reply)
    if (!cookies.isSent(request)) throw new Unauthenticated()
    if (!cookies.serves(request)) throw new OriginNotAllowed()
  }

  async function requireCookie (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const serves = cookies.serves(request)
    if (cookies.isSent(request) && !serves) throw new OriginNotAllowed()
    if (cookies.read(request)) return
    // A form on somebody else's page, with which no cookie comes, must not clear the one that is there.
    throw serves ? refuse(reply) : new InvalidSession()
  }
}

/** Who a session is for, from the head of a request: its socket may be gone later. One of the file system has no address. */
export default auth
