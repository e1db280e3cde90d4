import type { Worker } from 'node:cluster'
import { setImmediate as turn } from 'node:timers/promises'

/** A connection in the process that has accepted it. */
interface Handle { close (): void }

interface NewConnection { readonly act: 'newconn', readonly seq: number, readonly key: string }

/**
 * Gives the connections that a worker has not taken over when it ends to other workers. Node.js keeps them open in the
 * primary and forgets them (nodejs/node#21746), so that their clients would wait until they give up: about one
 * connection whenever a worker is killed under load. There is no public way to know these connections, so this uses the
 * messages between the primary and its workers. It has no effect if a version of Node.js changes them. A worker reads
 * nothing of a connection before it confirms it.
 *
 * @param hasOthers returns whether another worker takes connections
 */
export function recoverConnections ({ process: child }: Worker, hasOthers: () => boolean): void {
  const waiting = new Map<number, { handle: Handle, key: string }>()
  const { send } = child
  child.send = (...args: unknown[]) => {
    const [message, handle] = args
    if (isNewConnection(message)) waiting.set(message.seq, { handle: handle as Handle, key: message.key })
    return Reflect.apply(send, child, args)
  }
  child.on('internalMessage', ({ ack }: { ack?: number }) => { if (ack !== undefined) waiting.delete(ack) })
  // The event `disconnect` does not come while a connection is being handed over.
  child.once('exit', async () => {
    // The last messages of the worker may confirm connections.
    do await turn()
    while (child.connected)
    const pretend = (message: object) => child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ...message })
    // The worker must not get further ones.
    for (const { key } of waiting.values()) pretend({ act: 'close', key })
    for (const [ack, { handle }] of waiting) {
      // This is how a worker that stops gives a connection back.
      if (hasOthers()) pretend({ ack, accepted: false })
      else handle.close()
    }
  })
}

function isNewConnection (message: unknown): message is NewConnection {
  return (message as Partial<NewConnection> | undefined)?.act === 'newconn'
}
