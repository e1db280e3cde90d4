import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { findAccount } from '../../db/mail-links/password-links.ts'
import type { Caller } from '../../plugins/access/caller.ts'
import type { SecondProof } from '../../plugins/sign-in/login.ts'
import { describeTag } from '../../plugins/http/docs.ts'
import { forbidStoring } from '../../plugins/http/requests.ts'
import { InvalidToken, LoginReply } from '../../schema/sign-in/login.ts'
import type { AuthenticationResponse } from '../../schema/sign-in/passkeys.ts'
import {
  CompleteLogin, InvalidSecondFactor, SecondFactorMissing, StepUp, StepUpReply, WrongSecondFactor,
} from '../../schema/sign-in/second-factor.ts'
import { examples, FAILURES, failures, HEADERS } from '../../schema/http/reply.ts'
import { PasskeysUnavailable } from '../../schema/sign-in/passkeys.ts'
import { createLogIn } from './password-login.ts'
import { BODY_BYTES } from './passkeys.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'
import { createCeremonyCookie, createSessionCookie } from '../access/cookies.ts'

const PASSWORD = ['pwd'] as const
const schemas = {
  complete: {
    tags: ['second-factor'],
    operationId: 'completeLogin',
    [FAILURES]: examples(new PasskeysUnavailable()),
    summary: 'Complete a login with the second factor',
    body: CompleteLogin,
    [HEADERS]: { 200: ['Set-Cookie'] },
    response: { 200: LoginReply, ...failures(400, 401, 403, 409, 413, 415, 429) },
  },
  stepUp: {
    tags: ['second-factor'],
    security: [{ bearer: [] }],
    operationId: 'stepUp',
    [FAILURES]: examples(new PasskeysUnavailable()),
    summary: 'Confirm that it is you: authenticate the user of the session once more',
    body: StepUp,
    response: { 200: StepUpReply, ...failures(400, 401, 403, 409, 413, 415, 429) },
  },
}

/**
 * Adds the routes that complete a login and that authenticate the user of a session once more (contract 16.2, 16.4).
 */
const secondFactorRoutes: FastifyPluginAsyncTypebox = async (app) => {
  describeTag(app, 'second-factor', 'Authenticator apps, recovery codes and the confirmation that it is you')
  const {
    usherDatabase: { db }, usherAudit: audit,
    usherOptions: options, usherAccess: { authenticateAny, callerOf },
    usherSignIn: { login, loginMails, passkeys, stepUp, totp },
  } = app
  const cookies = await createSessionCookie(app)
  const ceremonies = await createCeremonyCookie(app)
  const { rejectFlood, show } = createLogIn(app, cookies)
  forbidStoring(app)

  app.post('/auth/login/second-factor', {
    schema: schemas.complete, bodyLimit: BODY_BYTES, onRequest: rejectFlood,
  }, onComplete)
  app.post('/auth/step-up', { schema: schemas.stepUp, bodyLimit: BODY_BYTES, onRequest: authenticateAny }, onStepUp)

  async function onComplete (request: RequestOf<typeof schemas.complete>, reply: ReplyOf<typeof schemas.complete>) {
    const { challenge, code, recoveryCode, passkey } = request.body
    const caller = callerOf(request, { actor: null })
    const replaced = cookies.serves(request) ? cookies.read(request) : undefined
    const loggedIn = await login.withSecondFactor(caller, { challenge, replaced }, async (userId) => passkey
      ? passkeys.proveFor(userId, 'login', ceremonyOf(request, passkey, ceremonies.read(request)), caller.log)
      : totp.prove(caller, userId, codeOf(code, recoveryCode)))
    cookies.set(reply, loggedIn.cookie, loggedIn.expiresAt)
    return show(loggedIn)
  }

  async function onStepUp (request: RequestOf<typeof schemas.stepUp>) {
    const { password } = request.body
    const caller = callerOf(request)
    try {
      return show(await login.stepUp(caller, password === undefined
        ? await proveFactor(request, caller)
        : await provePassword(caller, password)))
    } catch (error) {
      if (!(error instanceof InvalidSecondFactor)) throw error
      await recordFailure(caller)
      // Not 401, because the token is valid.
      throw new WrongSecondFactor()
    }
  }

  async function provePassword (caller: Caller, password: string) {
    const account = await findAccount(db, caller.getActor().id)
    // The user was deleted after the token was verified.
    if (!account) throw new InvalidToken()
    // The password may be what the thief of the session has.
    if (await stepUp.hasSecondFactor(caller)) throw new SecondFactorMissing()
    const passwordHash = await login.checkOwnPassword(caller, account, password, () => recordFailure(caller))
    return { amr: PASSWORD, passwordHash }
  }

  async function proveFactor (request: RequestOf<typeof schemas.stepUp>, caller: Caller): Promise<SecondProof> {
    const { code, recoveryCode, credential, mail } = request.body
    const { id } = caller.getActor()
    if (mail) {
      if (!options.loginMail) throw new InvalidSecondFactor()
      return loginMails.proveStepUp(caller, mail)
    }
    if (!credential) return totp.prove(caller, id, codeOf(code, recoveryCode))
    const ceremony = ceremonyOf(request, credential, [passkeys.sessionOf(caller)])
    return passkeys.proveFor(id, 'step-up', ceremony, caller.log)
  }

  async function recordFailure (caller: Caller): Promise<void> {
    await caller.confirm()
    await audit.add(caller, { action: 'step-up.failed' })
  }

  const ceremonyOf = (request: FastifyRequest, credential: AuthenticationResponse, bindings: readonly string[]) =>
    ({ credential, party: passkeys.relyingParty.of(request), bindings })
}

// The schema demands one of them.
const codeOf = (code: string | undefined, recoveryCode: string | undefined) =>
  code === undefined ? { recoveryCode: recoveryCode! } : { code }

export default secondFactorRoutes
