import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { forbidStoring } from '../../plugins/http/requests.ts'
import { failures } from '../../schema/http/reply.ts'
import { TokenReply, TokenRequest } from '../../schema/sign-in/login.ts'
import type { RequestOf } from '../http/route-types.ts'
import { createLogIn } from '../sign-in/password-login.ts'
import { createSessionCookie } from './cookies.ts'

const schemas = {
  create: {
    tags: ['auth'],
    security: [{ bearer: [] }],
    operationId: 'createToken',
    summary: 'Get another access token of the session, for an organisation or for none',
    body: TokenRequest,
    response: { 200: TokenReply, ...failures(400, 401, 403, 404, 413, 415) },
  },
}

/** Adds the route for tokens of an organisation (contract 19.3). */
const tokenRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { usherAccess: { authenticateSession, callerOf }, usherSignIn: { login } } = app
  const { show } = createLogIn(app, await createSessionCookie(app))
  forbidStoring(app)

  app.post('/auth/token', { schema: schemas.create, onRequest: authenticateSession }, onCreate)

  async function onCreate (request: RequestOf<typeof schemas.create>) {
    return show(await login.issueToken(callerOf(request), request.body.organizationId))
  }
}

export default tokenRoutes
