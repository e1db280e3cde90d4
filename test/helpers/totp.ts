import type { FastifyInstance } from 'fastify'
import root, { type Test } from 'tap'
import type { UsherOptions } from '../../app.ts'
import { codeOf } from '../../plugins/sign-in/totp/codes.ts'
import type { Caller } from '../../plugins/access/caller.ts'
import type { LoggedIn, TestUsher } from './app.ts'
import { sharedInbox } from './mail.ts'
import { sharedPasskeys } from './passkeys.ts'
import { openScope } from './scope.ts'

const PERIOD_MS = 30_000

/** An authenticator app, and the node that knows its secret. */
export interface Authenticator {
  secret: string
  recoveryCodes: string[]
  /** The token of the session, once it has used the code. */
  token: string
  /** Returns the code that the app shows now, or some steps later or earlier. */
  code (steps?: number): string
}

/** A clock that a test sets. All nodes that are opened with it have its time. */
export interface TestClock {
  now: number
  /** Lets some time steps pass. */
  pass (steps?: number): void
}

/** Creates a clock in the middle of a time step. */
export function createTestClock (): TestClock {
  const clock = {
    now: Math.floor(Date.now() / PERIOD_MS) * PERIOD_MS + PERIOD_MS / 2,
    pass (steps = 1) { clock.now += steps * PERIOD_MS },
  }
  return clock
}

/** Returns an app that tests share, as `sharedUsher` does. It can encrypt secrets and send mails. */
export const sharedTotp = (options: UsherOptions = {}) => sharedPasskeys({
  secret: 'a secret of the node', mailer: sharedInbox.mailer, pages: { productName: 'Vault & Co' }, ...options,
})

const nodes = new Map<UsherOptions, Promise<FastifyInstance>[]>()

/**
 * Returns two more nodes of an app that tests share, and a new clock that both have until another test asks for them.
 * The clock starts when they are open, which takes longer on a busy machine than a token may be ahead of a clock.
 */
export async function sharedNodes (
  { options }: TestUsher
): Promise<{ one: FastifyInstance, two: FastifyInstance, clock: TestClock }> {
  const opened = nodes.get(options) ?? [openScope(root, options), openScope(root, options)]
  nodes.set(options, opened)
  const [one, two] = await Promise.all(opened) as [FastifyInstance, FastifyInstance]
  const clock = createTestClock()
  for (const node of [one, two]) setClock(node, clock)
  return { one, two, clock }
}

/** Opens another node with this clock, for what authentication does without its routes. */
export async function openAuth (t: Test, usher: TestUsher, clock: TestClock): Promise<FastifyInstance> {
  const scope = await openScope(t, usher.options)
  setClock(scope, clock)
  return scope
}

/** Lets a node have the time of a clock. */
export function setClock (scope: FastifyInstance, clock: TestClock): void {
  scope.usherDatabase.clock.now = () => clock.now
}

/** Returns who performs an operation of a user. */
export async function callerOf (scope: FastifyInstance, user: Pick<LoggedIn, 'token'>): Promise<Caller> {
  const actor = await scope.usherAccess.identify(`Bearer ${user.token}`)
  return scope.usherAccess.createCaller({ via: 'rest', actor, address: '203.0.113.1', userAgent: 'test', log: scope.log })
}

/** Sets up an authenticator app for a user. */
export async function enrol (scope: FastifyInstance, caller: Caller, clock: TestClock): Promise<Authenticator> {
  const { totp } = scope.usherSignIn
  const { secret } = await totp.start(caller)
  const code = (steps = 0) => codeOf(secret, Math.floor(clock.now / PERIOD_MS) + steps)
  return { secret, code, ...await totp.confirm(caller, code()) }
}
