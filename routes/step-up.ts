import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { findAccount } from '../db/auth/password-tokens.ts'
import { forbidStoring } from '../plugins/http/requests.ts'
import { InvalidToken } from '../schema/auth/login.ts'
import { SecondFactorMissing, StepUp, StepUpReply } from '../schema/auth/second-factor.ts'
import { failures } from '../schema/http/reply.ts'
import type { ReplyOf, RequestOf } from './route-types.ts'

const PASSWORD = ['pwd'] as const

const schemas = {
  stepUp: {
    tags: ['auth'],
    security: [{ bearer: [] }],
    summary: 'Confirm that it is you: authenticate the user of the session once more',
    body: StepUp,
    response: { 200: StepUpReply, ...failures(400, 401, 403, 413, 415, 429) },
  },
}

/** Adds the route that authenticates the user of a session once more (contract 16.2). */
const stepUpRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const { usherDatabase: { db }, usherAudit: audit, usherAuth: { authenticateAny, callerOf, login, stepUp, policy } } = app
  forbidStoring(app)

  app.post('/auth/step-up', { schema: schemas.stepUp, onRequest: authenticateAny }, onStepUp)

  async function onStepUp (request: RequestOf<typeof schemas.stepUp>, reply: ReplyOf<typeof schemas.stepUp>) {
    const caller = callerOf(request)
    const account = await findAccount(db, caller.getActor().id)
    // The user was deleted after the token was verified.
    if (!account) throw new InvalidToken()
    // The password may be what the thief of the session has.
    if (await stepUp.hasSecondFactor(caller)) throw new SecondFactorMissing()
    await login.checkOwnPassword(caller, account, request.body.password, async () => {
      await caller.confirm()
      await audit.add(caller, { action: 'step-up.failed' })
    })
    const { token, expiresAt, user, actor } = await login.stepUp(caller, { amr: PASSWORD, passwordHash: account.passwordHash ?? undefined })
    return reply.send({ token, tokenType: 'Bearer', expiresIn: login.secondsLeft(expiresAt), user: policy.viewOf(actor, user.id).show(user) })
  }
}

export default stepUpRoutes
