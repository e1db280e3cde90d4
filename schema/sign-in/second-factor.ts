import { Type } from '@sinclair/typebox'
import { defineError } from '../http/errors.ts'
import { exampleUser, line, Password } from '../strings/text.ts'
import { LoginReply } from './login.ts'
import { StepUpMail } from './mails.ts'
import { AuthenticationResponse } from './passkeys.ts'
import { RecoveryCode, TotpCode } from './totp.ts'

/** A second factor, as `methods` of a response names it. */
export type SecondFactorMethod = 'totp' | 'recovery-code' | 'passkey'

const methods = ['totp', 'recovery-code', 'passkey'] as const satisfies readonly SecondFactorMethod[]

/**
 * The first factor was right, and the user has a second one (contract 16.4). The response has the challenge to which
 * the second factor belongs. Only the login of a client has one.
 */
export class SecondFactorRequired extends defineError<string>(
  'SECOND_FACTOR_REQUIRED', 'A second factor is required: send it with the challenge', 401
) {
  readonly challenge: string | undefined
  readonly methods: readonly SecondFactorMethod[]

  constructor (challenge?: string, methods: readonly SecondFactorMethod[] = []) {
    super()
    this.challenge = challenge
    this.methods = methods
  }
}

export const InvalidChallenge = defineError(
  'INVALID_CHALLENGE', 'The challenge is unknown, used, or has expired: log in again', 401
)
export const InvalidSecondFactor = defineError('INVALID_SECOND_FACTOR', 'The second factor is wrong', 401)
export const WrongSecondFactor = defineError('WRONG_SECOND_FACTOR', 'The second factor is wrong', 403)
export const SecondFactorMissing = defineError(
  'SECOND_FACTOR_MISSING', 'A second factor is required here: add one, or confirm yours with POST /api/auth/step-up',
  403
)

/** An operation needs an authentication that is younger than `maxAge` seconds (RFC 9470, contract 16.2). */
export class StepUpRequired extends defineError<string>(
  'STEP_UP_REQUIRED', 'Confirm that it is you with POST /api/auth/step-up, and try again', 403
) {
  /** Seconds. */
  readonly maxAge: number

  constructor (maxAge: number) {
    super()
    this.maxAge = maxAge
  }
}

/** The header `WWW-Authenticate` of the response to `StepUpRequired` (RFC 9470 3). */
export const stepUpChallengeOf = ({ maxAge }: StepUpRequired): string =>
  `Bearer error="insufficient_user_authentication", max_age=${maxAge}`

/** The body of POST /api/auth/step-up (contract 16.2). */
export const StepUp = Type.Object({
  password: Type.Optional(Password),
  code: Type.Optional(TotpCode),
  recoveryCode: Type.Optional(RecoveryCode),
  credential: Type.Optional(AuthenticationResponse),
  mail: Type.Optional(StepUpMail),
}, {
  minProperties: 1,
  maxProperties: 1,
  title: 'StepUp',
  description: 'One of the members',
  examples: [{ password: exampleUser.password }],
})

/** The response of POST /api/auth/step-up. */
export const StepUpReply = Type.Object(LoginReply.properties, {
  title: 'StepUpReply',
  description: 'The user is authenticated once more; the token belongs to the same session',
})

export const Challenge = line({
  minLength: 1, maxLength: 100, description: 'The `challenge` of the response to the first factor',
})

/** The body of POST /api/auth/login/second-factor (contract 16.4). */
export const CompleteLogin = Type.Object({
  challenge: Challenge,
  code: Type.Optional(TotpCode),
  recoveryCode: Type.Optional(RecoveryCode),
  passkey: Type.Optional(AuthenticationResponse),
}, {
  minProperties: 2,
  maxProperties: 2,
  title: 'CompleteLogin',
  description: 'The challenge, and one of the other members',
  examples: [{ challenge: 'the-challenge-of-the-login', code: '123456' }],
})

/** The 401 response to a login: also with what a second factor needs. */
export const LoginFailure = Type.Object({
  error: Type.String(),
  code: Type.String(),
  challenge: Type.Optional(
    Type.String({ description: 'Belongs to the second factor; with the code `SECOND_FACTOR_REQUIRED`' })
  ),
  methods: Type.Optional(Type.Array(Type.Unsafe<SecondFactorMethod>({ type: 'string', enum: methods }), {
    description: 'The second factors that the user has; with the code `SECOND_FACTOR_REQUIRED`',
  })),
}, { title: 'LoginFailure', description: 'Why the login failed, or what it needs besides' })
