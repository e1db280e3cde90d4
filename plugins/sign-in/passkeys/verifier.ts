import { Worker } from 'node:worker_threads'
import type { AuthenticationResponse, RegistrationResponse } from '../../../schema/sign-in/passkeys.ts'
import { Overloaded } from '../../../schema/http/errors.ts'
import type { Core } from '../../core.ts'
import type { AuthenticatorState, Expected, NewCredential } from './verify-credential.ts'

const MAX_PENDING = 200
// From dist/, the module is JavaScript.
const WORKER = new URL(import.meta.url.endsWith('.ts') ? 'worker.ts' : 'worker.js', import.meta.url)

export type Job =
  { kind: 'registration', expected: Expected, credential: RegistrationResponse } |
  { kind: 'assertion', expected: Expected, credential: AuthenticationResponse, publicKey: Uint8Array }

/** What the thread gets. */
export interface Message { id: number, job: Job }

/** What it answers: either the result, or why the response is not valid. */
export interface Outcome { id: number, result?: NewCredential | AuthenticatorState, rejection?: string }

/** A response of an authenticator that is not valid. The message says why, for the log. */
export class InvalidResponse extends Error {}

interface Waiting {
  resolve (result: NewCredential | AuthenticatorState): void
  reject (error: Error): void
  timer: NodeJS.Timeout
}

export type Verifier = ReturnType<typeof createVerifier>

/**
 * Verifies the responses of authenticators in a thread of its own, which is started for the first one: the library adds
 * members to the globals of whoever imports it, and a host would see them. A thread that fails or takes too long is
 * replaced.
 * @param module what the thread runs
 */
export function createVerifier (
  { lifecycle, telemetry: { metrics }, options: { deadlines } }: Pick<Core, 'lifecycle' | 'telemetry' | 'options'>,
  module = WORKER
) {
  const { log } = lifecycle
  const waiting = new Map<number, Waiting>()
  let worker: Worker | undefined
  let lastId = 0
  const help = 'Responses of authenticators that'
  const verified = metrics.counter('usher_passkey_verifications_total', `${help} were verified`)
  metrics.gauge('usher_passkey_verifications_pending', `${help} wait to be verified`, () => waiting.size)
  lifecycle.addHook('onClose', async () => { await discard(worker) })

  function start (): Worker {
    // Neither the host's environment nor its flags concern the thread: a module that it preloads, for example. There is
    // no limit of memory either: the schemas limit the input, and V8 may end the process, not only the thread, when a
    // limit is reached.
    const started = new Worker(module, { name: 'usher-passkeys', env: {}, execArgv: [] })
    started.on('message', settle)
    started.on('error', (err) => {
      log.error({ err }, 'The thread that verifies passkeys has failed: another one is started for the next passkey')
      void discard(started)
    })
    started.on('exit', () => void discard(started))
    // Listening to messages keeps the process alive, so this comes after it.
    started.unref()
    return started
  }

  function settle ({ id, result, rejection }: Outcome): void {
    const job = waiting.get(id)
    if (!job) return
    forget(id, job)
    if (result) job.resolve(result)
    else job.reject(new InvalidResponse(rejection))
  }

  function forget (id: number, { timer }: Waiting): void {
    clearTimeout(timer)
    waiting.delete(id)
  }

  // Ends a thread, unless another one has replaced it. Nothing that waits for it will be answered.
  async function discard (ending: Worker | undefined): Promise<void> {
    if (!ending || worker !== ending) return
    worker = undefined
    for (const [id, job] of waiting) {
      forget(id, job)
      job.reject(new Overloaded())
    }
    await ending.terminate()
  }

  function run (job: Job): Promise<NewCredential | AuthenticatorState> {
    if (waiting.size >= MAX_PENDING) throw new Overloaded()
    verified.add()
    const asked = worker ??= start()
    const id = ++lastId
    const { promise, resolve, reject } = Promise.withResolvers<NewCredential | AuthenticatorState>()
    const timer = setTimeout(() => {
      log.error('The thread that verifies passkeys does not answer: another one is started for the next passkey')
      void discard(asked)
    }, deadlines.passkey)
    waiting.set(id, { resolve, reject, timer })
    asked.postMessage({ id, job } satisfies Message)
    return promise
  }

  return {
    /**
     * Verifies a registration. Throws `InvalidResponse` if it is not valid, and `Overloaded` if too many wait or the
     * thread has failed.
     */
    verifyRegistration: async (expected: Expected, credential: RegistrationResponse): Promise<NewCredential> =>
      await run({ kind: 'registration', expected, credential }) as NewCredential,

    /** Verifies an assertion with the public key of its passkey. Throws the same. */
    verifyAssertion: async (
      expected: Expected, credential: AuthenticationResponse, publicKey: Uint8Array
    ): Promise<AuthenticatorState> => run({ kind: 'assertion', expected, credential, publicKey }),
  }
}
