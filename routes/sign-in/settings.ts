import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { combinedTag } from '../../schema/http/entity-tag.ts'
import { failures, NotModified } from '../../schema/http/reply.ts'
import { describeField, SignInSettings } from '../../schema/sign-in/settings.ts'
import { writableFields } from '../../schema/users/user-fields.ts'
import { revalidate, sendNotModified } from '../http/conditional-request.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'

const schema = {
  tags: ['auth'],
  operationId: 'readSignInSettings',
  summary: 'Read what a login and a sign-up consist of, for pages of one\'s own',
  response: { 200: SignInSettings, 304: NotModified, ...failures(412) },
}

/** Adds GET /api/auth/settings (contract 15.2). */
const settingsRoute: FastifyPluginAsyncTypebox = async (app) => {
  const { usherOptions: { signUp, loginMail, userFields }, usherSignIn: { providers } } = app
  const fields = writableFields(userFields, 'owner').map((field) => [field.name, describeField(field)] as const)
  const settings = {
    signUp, loginMail, providers: providers.list(), fields: { properties: Object.fromEntries(fields) },
  }
  const tag = combinedTag(['settings 1', JSON.stringify(settings)])

  app.get('/auth/settings', { schema, exposeHeadRoute: true }, onRead)

  async function onRead (request: RequestOf<typeof schema>, reply: ReplyOf<typeof schema>) {
    return revalidate(request, reply, tag) ? sendNotModified(request, reply) : settings
  }
}

export default settingsRoute
