import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { FastifyBaseLogger } from 'fastify'
import type { NodeDeadlines } from './deadlines.ts'

// systemd sets it for units of `Type=notify`. It is no setting.
const VARIABLE = 'NOTIFY_SOCKET'
const PROGRAM = 'systemd-notify'

/**
 * Tells the manager of the service, such as systemd, what the node does. Without one, nothing happens. The methods
 * never throw.
 */
export interface ServiceManager {
  /**
   * The node serves, or a replacement of its workers has ended, whether it has succeeded or not. `status` is a sentence
   * for people.
   */
  ready (status: string): void
  /** The node begins to replace its workers. */
  reloading (): void
  stopping (): void
  /** Resolves when everything has been sent. */
  sent (): Promise<void>
}

/**
 * Returns the service manager that has started this process. Its children, such as workers and PostgreSQL, do not
 * inherit it. Node cannot send to datagram sockets of Unix, so systemd's own program does (sd_notify(3)): the unit
 * needs `NotifyAccess=all`.
 */
export function takeServiceManager (
  log: FastifyBaseLogger, { serviceManager: timeoutMs }: NodeDeadlines
): ServiceManager {
  const socket = process.env[VARIABLE]
  delete process.env[VARIABLE]
  let sending = Promise.resolve()

  // One after the other, so that they arrive in order.
  function send (...assignments: string[]): void {
    if (socket) sending = sending.then(() => sendTo(socket, assignments, timeoutMs)).catch(onError)
  }

  function onError (err: NodeJS.ErrnoException): void {
    const advice = err.code === 'ENOENT' ? `: the program ${PROGRAM} is missing, so use Type=exec` : ''
    log.warn({ err }, `systemd does not learn the state of the node${advice}`)
  }

  return {
    ready: (status) => send('READY=1', `STATUS=${status.replaceAll(/\s+/g, ' ')}`),
    // The clock of hrtime is CLOCK_MONOTONIC.
    reloading: () =>
      send('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`, 'STATUS=The workers are replaced'),
    stopping: () => send('STOPPING=1', 'STATUS=The node stops'),
    sent: () => sending,
  }
}

// The program waits until systemd has read the message, which it would otherwise not be able to assign to the unit.
async function sendTo (socket: string, assignments: readonly string[], timeoutMs: number): Promise<void> {
  await promisify(execFile)(PROGRAM, assignments, { env: { ...process.env, [VARIABLE]: socket }, timeout: timeoutMs })
}
