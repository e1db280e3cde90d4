import { addAbortSignal, type Readable } from 'node:stream'
import { UsherError } from '../../schema/http/errors.ts'
import type { ScannedUpload } from '../../schema/options/hooks.ts'
import { MalwareFound, ScanUnavailable, StorageUnavailable, TooLargeToScan } from '../../schema/uploads/upload.ts'
import type { Caller } from '../access/caller.ts'
import type { Core } from '../core.ts'
import type { HookRunner } from '../hooks/index.ts'
import { FairQueue } from '../support/fair-queue.ts'
import { askClamd } from './clamd.ts'

// clamd has ten threads by default, and several nodes may use it.
const CONCURRENCY = 4
const MAX_WAITING = 1000

interface Dependencies extends Core {
  hooks: HookRunner
}

export type Scanner = ReturnType<typeof createScanner>

/** Has a clamd and the host look at the bytes of uploads before anybody can read them (contract 23.3). */
export function createScanner (
  { lifecycle: { log }, options: { scan: { clamd, seconds } }, telemetry: { metrics }, hooks }: Dependencies
) {
  const hasHook = hooks.has('beforeUploadPublish')
  const queue = new FairQueue({ concurrency: CONCURRENCY, maxWaiting: MAX_WAITING })
  const scans = metrics.counter('usher_upload_scans_total', 'Uploads that were scanned', {
    label: 'result', values: ['accepted', 'rejected', 'failed'],
  })
  metrics.gauge('usher_upload_scans_waiting', 'Uploads that wait for their scan', () => queue.waiting)

  // Rejects with the reason when the signal aborts, whatever `work` does.
  async function untilAborted<Result> (work: Promise<Result>, signal: AbortSignal): Promise<Result> {
    const { promise, reject } = Promise.withResolvers<never>()
    const onAbort = () => reject(signal.reason as Error)
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort)
    try {
      return await Promise.race([work, promise])
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  async function look (
    upload: ScannedUpload, caller: Caller, read: () => Promise<Readable>, signal: AbortSignal
  ): Promise<void> {
    signal.throwIfAborted()
    if (clamd !== undefined) await withBytes(read, signal, (bytes) => requireClean(clamd, upload, bytes, signal))
    if (hasHook) await withBytes(read, signal, (bytes) => hooks.publish(bytes, upload, caller, signal))
  }

  async function requireClean (
    place: string, { userId, sha256, filename, size }: ScannedUpload, bytes: Readable, signal: AbortSignal
  ): Promise<void> {
    const verdict = await askClamd(place, { bytes, size }, signal).catch((cause: unknown) => {
      throw new ScanUnavailable({ cause })
    })
    if (verdict.is === 'clean') return
    if (verdict.is === 'too large') throw new TooLargeToScan()
    log.warn({ userId, sha256, filename, found: verdict.name }, 'An upload was rejected, because clamd has found malware')
    throw new MalwareFound()
  }

  return {
    /** Whether uploads are scanned. */
    isOn: clamd !== undefined || hasHook,

    /**
     * Resolves when nobody has anything against an upload. Throws `MalwareFound`, `TooLargeToScan`, what the hook of
     * the host throws, `ScanUnavailable` if there is no verdict in time, `Overloaded` if too many uploads wait for
     * theirs, and `StorageUnavailable`.
     * @param read returns the bytes, each time from the beginning
     */
    async scan (upload: ScannedUpload, caller: Caller, read: () => Promise<Readable>): Promise<void> {
      if (clamd === undefined && !hasHook) return
      const controller = new AbortController()
      const { signal } = controller
      const timer = setTimeout(() => {
        controller.abort(new ScanUnavailable({ cause: new Error(`An upload was not scanned within ${seconds} seconds`) }))
      }, seconds * 1000)
      try {
        // The time runs while it waits for its turn, and a hook that goes on afterwards does not keep its place.
        await untilAborted(
          queue.run([upload.userId], () => untilAborted(look(upload, caller, read, signal), signal)), signal
        )
        scans.add(1, 'accepted')
      } catch (error) {
        scans.add(1, isRejection(error) ? 'rejected' : 'failed')
        throw error
      } finally {
        clearTimeout(timer)
      }
    },
  }
}

// Bytes that cannot be read are not those that were looked at, even if nobody has noticed it.
async function withBytes (
  read: () => Promise<Readable>, signal: AbortSignal, use: (bytes: Readable) => Promise<void>
): Promise<void> {
  // Who never ends must not keep them open.
  const bytes = addAbortSignal(signal, await read())
  let failure: Error | undefined
  bytes.once('error', (cause) => {
    // That of a signal, and of whoever stops to iterate over a stream.
    if (cause.name === 'AbortError') return
    failure = cause instanceof UsherError ? cause : new StorageUnavailable({ cause })
  })
  try {
    await use(bytes)
  } catch (error) {
    throw failure ?? error
  } finally {
    bytes.destroy()
  }
  if (failure) throw failure
}

const isRejection = (error: unknown): boolean => {
  const { statusCode = 500 } = error as { statusCode?: number }
  return statusCode >= 400 && statusCode < 500
}
