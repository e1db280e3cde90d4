import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { forbidStoring } from '../plugins/http/requests.ts'
import { UseToken } from '../schema/auth/mail-token.ts'
import { MailReply } from '../schema/auth/password.ts'
import { failures, NoContent } from '../schema/http/reply.ts'
import { SignUp } from '../schema/auth/sign-up.ts'
import { User } from '../schema/users/user.ts'
import { withoutProtected } from '../schema/users/user-fields.ts'
import type { ReplyOf, RequestOf } from './route-types.ts'

const tags = ['auth']
const schemas = {
  signUp: {
    tags,
    summary: 'Sign up: request an e-mail with a link that creates the user',
    body: SignUp,
    response: { 202: MailReply, ...failures(400, 413, 415, 429) },
  },
  check: {
    tags,
    summary: 'Check whether the token of the link is valid, without using it',
    body: UseToken,
    response: { 204: NoContent, ...failures(400, 413, 415) },
  },
  confirm: {
    tags,
    summary: 'Create the user of a sign-up with the token of the link',
    body: UseToken,
    response: { 201: User, ...failures(400, 409, 413, 415) },
  },
}

/** Adds the routes for signing up, if the option `signUp` is set (contract 11.2). */
const signUpRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherOptions: { signUp, publicPath }, usherAuth: { callerOf, signUps, policy }, usherAccounts: { newUsers },
  } = app
  if (!signUp) return
  forbidStoring(app)

  app.post('/auth/sign-up', { schema: schemas.signUp, preValidation: createReadSignUp(app) }, onSignUp)
  app.post('/auth/sign-up/check', { schema: schemas.check }, onCheck)
  app.post('/auth/sign-up/confirm', { schema: schemas.confirm }, onConfirm)

  async function onSignUp (request: RequestOf<typeof schemas.signUp>, reply: ReplyOf<typeof schemas.signUp>) {
    await newUsers.signUp(callerOf(request, { actor: null, via: 'sign-up' }), request.body)
    return reply.code(202).send({ message: 'A mail to this address says how to go on' })
  }

  async function onCheck (request: RequestOf<typeof schemas.check>, reply: ReplyOf<typeof schemas.check>) {
    await signUps.check(request.body.token)
    return reply.code(204).send(null)
  }

  async function onConfirm (request: RequestOf<typeof schemas.confirm>, reply: ReplyOf<typeof schemas.confirm>) {
    const user = await newUsers.confirmSignUp(callerOf(request, { actor: null, via: 'sign-up-confirmation' }), request.body.token)
    const self = { id: user.id, role: user.role, sessionId: '', amr: [], authTime: 0, claims: {} }
    const etag = policy.viewOf(self, user.id).tagOf(user)
    const location = `${publicPath}/api/users/${user.id}`
    return reply.code(201).headers({ location, etag }).send(policy.showOwn(user))
  }
}

/**
 * Returns a `preValidation` hook that removes the fields that users may not write. It runs before the validation,
 * because the values of fields that are ignored do not matter.
 */
export function createReadSignUp ({ usherOptions: { userFields } }: FastifyInstance) {
  return async (request: FastifyRequest): Promise<void> => {
    const { body } = request
    if (typeof body !== 'object' || body === null || Array.isArray(body)) return
    request.body = withoutProtected(userFields, body, 'owner')
  }
}

export default signUpRoutes
