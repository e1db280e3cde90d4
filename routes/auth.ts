import fastifyCookie from '@fastify/cookie'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { findCredentials, updatePasswordHash, type Credentials } from '../db/users.ts'
import { Login, LoginReply, ProtectedReply } from '../schema/auth.ts'
import { InvalidCredentials, InvalidToken, OriginNotAllowed, Unauthenticated } from '../schema/errors.ts'
import { failures, NoContent } from '../schema/reply.ts'

const COOKIE = 'usher_session'

/** Login, logout and the protected route (contract 4). */
const auth: FastifyPluginAsyncTypebox = async (app) => {
  const { usherDatabase: { db, read }, usherAuth, usherTokens: tokens, usherSessions: sessions, usherPasswords: passwords, usherOptions } = app
  const { prefix, publicUrl, origins } = usherOptions
  const cookiePath = `${prefix}/api/auth`
  const allowedOrigins = new Set([...origins, ...publicUrl ? [new URL(publicUrl).origin] : []])
  const tags = ['auth']
  const security = [{ bearer: [] }]

  // The host's own @fastify/cookie serves as well, whatever its hook: only its two functions are used.
  if (!app.hasDecorator('parseCookie')) await app.register(fastifyCookie)

  app.post('/auth/login', {
    schema: { tags, summary: 'Log in', body: Login, response: { 200: LoginReply, ...failures(400, 401, 413, 415) } },
  }, async (request, reply) => {
    const { email, password } = request.body
    const user = await findCredentials(db, email)
    if (!await passwords.verify(password, user?.passwordHash, request.socket)) throw new InvalidCredentials()
    await renewHash(user!, password)
    const { id, role, secret, expiresAt } = await sessions.start({ userId: user!.id, address: request.ip, userAgent: request.headers['user-agent'] ?? '' })
    setCookie(reply, secret, expiresAt)
    const token = tokens.sign({ id: user!.id, role, sessionId: id })
    return { token, tokenType: 'Bearer', expiresIn: tokens.lifetime, user: { ...user!, role } }
  })

  app.post('/auth/logout', {
    onRequest: authenticateLogout,
    schema: { tags, security: [{ bearer: [] }, { session: [] }], summary: 'Log out: the session ends on every node', response: { 204: NoContent, ...failures(401, 403) } },
  }, async (request, reply) => {
    await sessions.end(request.actor ? { id: request.actor.sessionId } : { secret: secretOf(request)! })
    setCookie(reply, '', new Date(0))
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

  async function renewHash ({ id, passwordHash }: Credentials, password: string): Promise<void> {
    if (passwords.isOutdated(passwordHash!)) await updatePasswordHash(db, id, passwordHash!, await passwords.hash(password))
  }

  // By the token where there is one; by the cookie only for an origin that it serves.
  async function authenticateLogout (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { authorization, origin } = request.headers
    if (authorization) return usherAuth.authenticate(request, reply)
    if (!secretOf(request)) throw new Unauthenticated()
    if (origin && origin !== `${request.protocol}://${request.host}` && !allowedOrigins.has(origin)) throw new OriginNotAllowed()
  }

  function secretOf ({ headers: { cookie } }: FastifyRequest): string | undefined {
    return app.parseCookie(cookie ?? '')[COOKIE]
  }

  function setCookie (reply: FastifyReply, value: string, expires: Date): void {
    const secure = reply.request.protocol === 'https'
    reply.header('set-cookie', app.serializeCookie(COOKIE, value, { path: cookiePath, httpOnly: true, sameSite: 'lax', secure, expires }))
  }
}

export default auth
