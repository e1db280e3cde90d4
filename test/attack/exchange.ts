import type { Actor } from './actors.ts'
import type { Lane } from './context.ts'
import { NoReply } from './http-connection.ts'
import type { Reply } from './reply-parser.ts'

/** A well-formed request. */
export interface Request {
  readonly method: string
  readonly path: string
  readonly actor?: Actor
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

/** Returns the bytes of a request. */
export function writeRequest ({ method, path, actor, headers = {}, body }: Request): Buffer {
  const lines = [`${method} ${path} HTTP/1.1`, 'host: localhost']
  if (actor?.authorization !== undefined) lines.push(`authorization: ${actor.authorization}`)
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`)
  if (body === undefined) return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  const bytes = Buffer.from(body)
  lines.push(`content-length: ${bytes.length}`)
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), bytes])
}

/** Returns a request as text for reports. */
export const describe = (request: Request): string => writeRequest(request).toString('utf8')

/**
 * Sends well-formed requests in one write and returns their replies. A reply is undefined if an earlier reply closed
 * the connection. Counts the replies and checks what must hold for every response.
 */
export async function exchange (
  lane: Lane, attack: string, requests: readonly Request[]
): Promise<(Reply | undefined)[]> {
  const connection = await lane.connection()
  const replies = requests.map(({ method }) => connection.reply({ isHead: method === 'HEAD' }))
  connection.send(Buffer.concat(requests.map(writeRequest)))
  const settled = await Promise.allSettled(replies)
  let closing = false
  return settled.map((outcome, index) => {
    if (outcome.status === 'rejected') {
      lane.findings.count(attack, closing ? 'closed' : 'no reply')
      if (!closing) {
        lane.findings.violation('unanswered', attack, (outcome.reason as Error).message, describe(requests[index]!))
      }
      closing = true
      return undefined
    }
    closing ||= /^connection: *close/im.test(outcome.value.head)
    check(lane, attack, outcome.value, () => describe(requests[index]!))
    return outcome.value
  })
}

/** Sends one request on the lane's connection. */
export async function ask (lane: Lane, attack: string, request: Request): Promise<Reply | undefined> {
  return (await exchange(lane, attack, [request]))[0]
}

/** Counts a reply, and reports it if the server failed. Load shedding counts as a reply, not as a failure. */
export function check ({ findings }: Lane, attack: string, { status, body }: Reply, request: () => string): void {
  const shed = status === 503 && body.includes('"OVERLOADED"')
  findings.count(attack, shed ? '503 shed' : status)
  if (status >= 500 && !shed) findings.violation('server-error', attack, `${status} ${body}`, request())
  else if (status === 0) findings.violation('contract', attack, 'the response is not HTTP', request())
}

/** Waits for a reply on a separate connection. Returns undefined if the node closed the connection without one. */
export async function awaitReply (reply: Promise<Reply>): Promise<Reply | undefined> {
  try {
    return await reply
  } catch (error) {
    if (error instanceof NoReply) return undefined
    throw error
  }
}
