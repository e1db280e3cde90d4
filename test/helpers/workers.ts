import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { isAlive } from '../../node/embedded/cluster.ts'
import { logged, type ServingNode, type TestNode } from './node.ts'

interface Line { pid: number, msg: string, worker?: number, reqId?: string }

/** Returns the lines of the log so far. */
function linesOf ({ stdout }: TestNode): Line[] {
  return stdout.split('\n').slice(0, -1).map((line) => JSON.parse(line))
}

/** Returns the process numbers of the workers that serve, by the log of their node. */
export function workersOf (node: TestNode): number[] {
  const lines = linesOf(node).filter(({ worker }) => worker !== undefined)
  const ended = new Set(lines.filter(({ msg }) => msg.startsWith('A worker has ended')).map(({ worker }) => worker))
  return lines.filter(({ msg, worker }) => msg === 'A worker listens' && !ended.has(worker))
    .map(({ worker }) => worker!)
}

/** Resolves when a number of workers serves, none of which is one of `others`. */
export async function serving (node: TestNode, count: number, others: readonly number[] = []): Promise<number[]> {
  const current = () => workersOf(node).filter((pid) => !others.includes(pid))
  await logged(node, () => current().length === count && workersOf(node).length === count)
  return current()
}

/** Resolves when none of the processes exists any more. */
export async function gone (pids: readonly number[]): Promise<void> {
  while (pids.some(isAlive)) await new Promise(setImmediate)
}

export interface Pinned {
  /** The process that serves the connection. */
  readonly pid: number
  send (path: string, init?: { method?: string, headers?: Record<string, string> }): Promise<
    { status: number, body: string }
  >
}

/**
 * Opens connections that are kept alive until they are served by two processes. The node needs the log level `debug`.
 */
export async function pinToWorkers (t: Test, node: ServingNode): Promise<[Pinned, Pinned]> {
  const found = new Map<number, Pinned>()
  while (found.size < 2) {
    const pinned = await pin(t, node)
    found.set(pinned.pid, pinned)
  }
  return [...found.values()] as [Pinned, Pinned]
}

async function pin (t: Test, node: ServingNode): Promise<Pinned> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => agent.destroy())
  const send: Pinned['send'] = async (path, init) => {
    const sent = request(`${node.url}${path}`, { agent, ...init }).end()
    const [response] = await once(sent, 'response')
    return { status: response.statusCode, body: await text(response) }
  }
  const id = crypto.randomUUID()
  await send('/health/live', { headers: { 'x-request-id': id } })
  const line = () => linesOf(node).find(({ reqId, msg }) => reqId === id && msg === 'request completed')
  await logged(node, () => line() !== undefined)
  return { pid: line()!.pid, send }
}
