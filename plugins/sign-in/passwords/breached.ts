import { createHash } from 'node:crypto'
import { networksOf } from '../../../schema/http/network.ts'
import { inTime } from '../../../schema/runtime/in-time.ts'
import { BreachedPassword } from '../../../schema/sign-in/passwords/passwords.ts'
import type { Core } from '../../core.ts'
import { FairQueue } from '../../support/fair-queue.ts'
import { createPublicRequest } from '../../support/public-request.ts'
import { createSampler } from '../../support/sampler.ts'
import { openBreachedFile } from './breached-file.ts'
import { askBreachedService } from './breached-service.ts'
import type { RejectBreached } from './passwords.ts'

// The threads that read a disk that hangs are not those that hash passwords.
const MAX_READS = 2
const MAX_REQUESTS = 16
const MAX_WAITING = 200

type LookUp = (hash: string, signal: AbortSignal) => Promise<boolean>

/**
 * Opens where breached passwords are looked up: a file, a service, or both, in this order (contract 23.1). A password
 * about which one of them gives no answer in time is accepted, which metrics count and the log says. Throws an `Error`
 * with a sentence if the file has something else.
 */
export async function openBreachedPasswords (
  { lifecycle, options: { breachedPasswords = {}, deadlines }, telemetry: { metrics } }:
  Pick<Core, 'lifecycle' | 'options' | 'telemetry'>
): Promise<RejectBreached> {
  const { file: path, url } = breachedPasswords
  const { log } = lifecycle
  const sources: { source: string, lookUp: LookUp, queue: FairQueue }[] = []

  if (path !== undefined) {
    const file = await openBreachedFile(path).catch((cause: Error) => {
      throw new Error(`usher: breachedPasswords.file ${path} cannot be used: ${cause.message}`, { cause })
    })
    lifecycle.addHook('onClose', () => file.close())
    sources.push({ source: 'file', lookUp: (hash) => file.has(hash), queue: queueOf(MAX_READS) })
  }
  if (url !== undefined) {
    const { breachedPassword: connectMs, dns: dnsMs } = deadlines
    // The operator has chosen the address.
    const send = createPublicRequest({ allowPrivateAddresses: true, connectMs, dnsMs })
    const lookUp: LookUp = (hash, signal) => askBreachedService(send, url, hash, signal)
    sources.push({ source: 'service', lookUp, queue: queueOf(MAX_REQUESTS) })
  }
  if (sources.length === 0) return async () => {}

  const values = ['breached', 'unknown', 'unanswered']
  const checked = metrics.counter(
    'usher_breached_password_checks_total', 'New passwords that were looked up among breached ones', { label: 'result', values }
  )
  const isNew = createSampler()

  return async (password, { client, address = '', isKnown = false }) => {
    const hash = createHash('sha1').update(password).digest('hex').toUpperCase()
    const networks = networksOf(address)
    const names = [`${isKnown}`, networks.at(-1)!.name, networks[0]!.name]
    const aborter = new AbortController()
    const late = () => {
      const error = new Error(`no answer within ${deadlines.breachedPassword} ms`)
      aborter.abort(error)
      return error
    }
    let result = 'unknown'

    async function lookUpAll (): Promise<void> {
      for (const { source, lookUp, queue } of sources) {
        try {
          const found = await queue.run(names, async () => {
            aborter.signal.throwIfAborted()
            return !client?.destroyed && await lookUp(hash, aborter.signal)
          })
          if (!found) continue
          result = 'breached'
          return
        } catch (err) {
          result = 'unanswered'
          report(source, err)
        }
      }
    }

    await inTime(lookUpAll(), deadlines.breachedPassword, late).catch((err) => {
      result = 'unanswered'
      report('deadline', err)
    })
    checked.add(1, result)
    if (result === 'breached') throw new BreachedPassword()
  }

  function report (source: string, err: unknown): void {
    if (isNew(source)) log.warn({ err, source }, 'A password was accepted without the answer whether it was breached')
  }
}

const queueOf = (concurrency: number) => new FairQueue({ concurrency, maxWaiting: MAX_WAITING })
