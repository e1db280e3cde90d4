import type { FastifyPluginAsync } from 'fastify'
import { Type } from '@sinclair/typebox'
import { failures } from '../../schema/http/reply.ts'
import { describeTag } from '../../plugins/http/docs.ts'

/** Adds GET /api/redirect (contract 6). */
const redirect: FastifyPluginAsync = async (app) => {
  const { publicPath, redirectTo = `${publicPath}/api/users` } = app.usherOptions
  describeTag(app, 'redirect', 'A redirect')

  app.get('/redirect', {
    schema: {
      tags: ['redirect'],
      operationId: 'redirect',
      summary: 'Redirect to the users list',
      response: { 302: Type.Null({ description: 'The header `Location` has the address of the users list' }), ...failures() },
    },
  }, async (_, reply) => reply.redirect(redirectTo, 302))
}

export default redirect
