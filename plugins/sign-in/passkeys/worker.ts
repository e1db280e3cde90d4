import { parentPort } from 'node:worker_threads'
import type { Job, Message, Outcome } from './verifier.ts'
import { verifyAssertion, verifyRegistration } from './verify-credential.ts'

// The thread in which the responses of authenticators are verified, see `verifier.ts`.
const port = parentPort!

port.on('message', async ({ id, job }: Message) => port.postMessage({ id, ...await verify(job) } satisfies Outcome))

async function verify (job: Job): Promise<Omit<Outcome, 'id'>> {
  try {
    return job.kind === 'registration'
      ? { result: await verifyRegistration(job.expected, job.credential) }
      : { result: await verifyAssertion(job.expected, job.credential, job.publicKey) }
  } catch (error) {
    // Also a `RangeError` of input that is nested too deeply.
    return { rejection: error instanceof Error ? error.message : String(error) }
  }
}
