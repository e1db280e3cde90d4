import fastifyCookie from '@fastify/cookie'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { findCredentials } from '../db/users.ts'
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

  // The host's own @fastify/cookie serves as well: every attribute is given each time.
  if (!app.hasRequestDecorator('cookies')) await app.register(fastifyCookie)

  app.post('/auth/login', {
    schema: { tags, summary: 'Log in', body: Login, response: { 200: LoginReply, ...failures(400, 401, 413, 415) } },
  }, async (request, reply) => {
    const user = await findCredentials(db, request.body.email)
    if (!await passwords.verify(request.body.password, user?.passwordHash)) throw new InvalidCredentials()
    const session = await sessions.start({ userId: user!.id, address: request.ip, userAgent: request.headers['user-agent'] ?? '' })
    setCookie(reply, session.secret, session.expiresAt)
    const token = tokens.sign({ id: user!.id, role: user!.role, sessionId: session.id })
    return { token, tokenType: 'Bearer', expiresIn: tokens.lifetime, user: user! }
  })

  app.post('/auth/logout', {
    schema: { tags, security: [{ bearer: [] }, { session: [] }], summary: 'Log out: the session ends on every node', response: { 204: NoContent, ...failures(401, 403) } },
  }, async (request, reply) => {
    const secret = request.cookies[COOKIE]
    if (request.headers.authorization) await endOfToken(request, reply)
    else if (secret) await endOfCookie(request, secret)
    else throw new Unauthenticated()
    setCookie(reply, '', new Date(0))
    return reply.code(204).send(null)
  })

  app.get('/protected', {
    onRequest: usherAuth.authenticate,
    schema: { tags, security, summary: 'Read the actor', response: { 200: ProtectedReply, ...failures(401) } },
  }, async ({ actor }) => {
    const user = await read.user(actor!.id)
    // Deleted between the check of the token and now.
    if (!user) throw new InvalidToken()
    return { user }
  })

  async function endOfToken (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    await usherAuth.authenticate(request, reply)
    await sessions.end({ id: request.actor!.sessionId })
  }

  async function endOfCookie (request: FastifyRequest, secret: string): Promise<void> {
    const { origin } = request.headers
    if (origin && origin !== `${request.protocol}://${request.host}` && !allowedOrigins.has(origin)) throw new OriginNotAllowed()
    await sessions.end({ secret })
  }

  function setCookie (reply: FastifyReply, value: string, expires: Date): void {
    const secure = reply.request.protocol === 'https'
    reply.setCookie(COOKIE, value, { path: cookiePath, httpOnly: true, sameSite: 'lax', secure, expires })
  }
}

export default auth
