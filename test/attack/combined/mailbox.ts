import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { SMTPServer } from 'smtp-server'

/** A mail server that accepts everything. */
export interface Mailbox {
  readonly url: string
  /** When the first mail to each address arrived, in milliseconds since 1970. */
  readonly arrivals: ReadonlyMap<string, number>
  close (): Promise<void>
}

/** Starts a mail server on the loopback network. */
export async function openMailbox (): Promise<Mailbox> {
  const arrivals = new Map<string, number>()
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    onData (stream, { envelope: { rcptTo } }, done) {
      stream.resume().on('end', () => {
        for (const { address } of rcptTo) if (!arrivals.has(address)) arrivals.set(address, Date.now())
        done()
      })
    },
  })
  const listening = server.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  return {
    url: `smtp://127.0.0.1:${(listening.address() as AddressInfo).port}`,
    arrivals,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}
