import { setTimeout as delay } from 'node:timers/promises'
import type { Account } from '../actors.ts'
import { forbiddenMark, type Attack, type Lane } from '../context.ts'
import { ask, awaitReply, check, describe, exchange, writeRequest, type Request } from '../exchange.ts'
import { RawSocket } from '../web-socket.ts'

const NAME = 'disorder'
// A node rejects a session that it ended itself at once, and one that another node ended within 100 ms (contract 4).
const EXPIRES_SECONDS = 2
const BOUNDARY = 'disorder'
const NOBODY = '01900000-0000-7000-8000-000000000000'

interface Login { token: string, cookie: string, id: string, sessionId: string }

/**
 * Requests whose permission ends before they are complete. Those that finish later must be rejected and leave nothing
 * behind.
 */
export const disorder: Attack = {
  name: NAME,
  weight: 1.2,
  async run (lane) {
    const account = lane.random.pick(lane.cast.world.disposableAdmins)
    const login = await logIn(lane, account)
    if (!login) return
    await lane.random.pick([endDuringBody, expireDuringBody, endDuringSocket, refreshAfterEnd, deleteDuringUpload])(
      lane, login
    )
    await endSession(lane, login)
  },
}

async function logIn (
  lane: Lane, { email, password }: Pick<Account, 'email' | 'password'>
): Promise<Login | undefined> {
  const reply = await ask(lane, NAME, {
    method: 'POST',
    path: '/api/auth/login',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email, password }),
  })
  if (reply?.status !== 200) {
    if (reply && reply.status !== 503 && reply.status !== 429) {
      lane.findings.violation('wrongly-refused', NAME, `a login got ${reply.status} ${reply.body}`)
    }
    return undefined
  }
  const { token, user: { id } } = JSON.parse(reply.body) as { token: string, user: { id: string } }
  const { sid: sessionId } = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString()) as { sid: string }
  return { token, id, sessionId, cookie: /^set-cookie: *([^;]*)/im.exec(reply.head)?.[1] ?? '' }
}

/** Returns a write with a mark that must never be stored. `interrupt` sends it in two parts. */
function generateWrite ({ random, shared: { expendable } }: Lane, token: string): Request {
  const name = forbiddenMark(random)
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const user = JSON.stringify({ name, email: `${name}@example.org`, role: 'admin' })
  const upload =
    `--${BOUNDARY}\r\ncontent-disposition: form-data; name="description"\r\n\r\n${name}\r\n--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\nwords\r\n--${BOUNDARY}--\r\n`
  return random.pick([
    { method: 'POST', path: '/api/users', headers, body: user },
    { method: 'PUT', path: `/api/users/${expendable.at(-1) ?? NOBODY}`, headers, body: user },
    {
      method: 'POST',
      path: '/graphql',
      headers,
      body: JSON.stringify({ query: `mutation { createPost(input: { title: "${name}", content: "" }) { id } }` }),
    },
    {
      method: 'POST',
      path: '/api/uploads',
      headers: { ...headers, 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
      body: upload,
    },
  ])
}

/** Sends a request without its end, calls `during`, and sends the end. */
async function interrupt (lane: Lane, request: Request, during: () => Promise<boolean>): Promise<void> {
  const connection = await lane.open()
  const reply = connection.reply()
  reply.catch(() => {})
  const bytes = writeRequest(request)
  const rest = 1 + lane.random.below(request.body!.length - 1)
  connection.send(bytes.subarray(0, -rest))
  const isOver = await during()
  connection.send(bytes.subarray(-rest))
  const received = await awaitReply(reply)
  await connection.close()
  if (!received) return lane.findings.count(NAME, 'closed')
  check(lane, NAME, received, () => describe(request))
  const { status, body } = received
  const isDone = request.path === '/graphql' ? /"createPost":\{/.test(body) : status < 400
  if (isOver && isDone) {
    lane.findings.violation(
      'authorization', NAME, `a write took effect after its session had ended: ${status} ${body.slice(0, 200)}`,
      describe(request)
    )
  }
}

async function endDuringBody (lane: Lane, login: Login): Promise<void> {
  await interrupt(lane, generateWrite(lane, login.token), async () => {
    await delay(lane.random.below(20))
    return endSession(lane, login)
  })
}

async function expireDuringBody (lane: Lane, { id, sessionId }: Login): Promise<void> {
  const token = lane.cast.tokens.sign({ id, sessionId, role: 'admin' }, { seconds: EXPIRES_SECONDS })
  await interrupt(lane, generateWrite(lane, token), async () => {
    await delay((EXPIRES_SECONDS + 1) * 1000)
    return true
  })
}

async function endDuringSocket (lane: Lane, login: Login): Promise<void> {
  const socket = await RawSocket.open(lane.shared.target, { address: lane.address, protocol: 'graphql-transport-ws' })
  if (typeof socket === 'number') return
  socket.send({ type: 'connection_init', payload: { authorization: `Bearer ${login.token}` } })
  await socket.hear(({ type }) => type === 'connection_ack')
  const isOver = await endSession(lane, login)
  const statement = {
    type: 'subscribe',
    id: '1',
    payload: {
      query: `mutation { done: createPost(input: { title: "${forbiddenMark(lane.random)}", content: "" }) { id } }`,
    },
  }
  socket.send(statement)
  const message = await socket.hear(({ type }) => type === 'next', 1000)
  if (isOver && JSON.stringify(message ?? '').includes('"done":{')) {
    lane.findings.violation(
      'authorization', NAME, 'a socket wrote after its session had ended', JSON.stringify(statement)
    )
  }
  await socket.close()
}

async function refreshAfterEnd (lane: Lane, login: Login): Promise<void> {
  const isOver = await endSession(lane, login)
  const refresh = { method: 'POST', path: '/api/auth/refresh', headers: { cookie: login.cookie } }
  const replies = await exchange(lane, NAME, [refresh, refresh, refresh])
  if (isOver && replies.some((reply) => reply?.status === 200)) {
    lane.findings.violation('authorization', NAME, 'an ended session was refreshed')
  }
}

async function deleteDuringUpload (lane: Lane, login: Login): Promise<void> {
  const { random } = lane
  const [email, password] = [`may-${random.word(12)}@example.org`, 'an unusual phrase']
  const headers = { authorization: `Bearer ${login.token}`, 'content-type': 'application/json' }
  const created = await ask(lane, NAME, {
    method: 'POST', path: '/api/users', headers, body: JSON.stringify({ name: 'may-be-deleted', email, password }),
  })
  if (created?.status !== 201) return
  const user = await logIn(lane, { email, password })
  if (!user) return
  let request = generateWrite(lane, user.token)
  while (request.path !== '/api/uploads') request = generateWrite(lane, user.token)
  await interrupt(lane, request, async () => {
    const reply = await ask(
      lane, NAME, { method: 'DELETE', path: `/api/users/${user.id}`, headers: { authorization: headers.authorization } }
    )
    return reply?.status === 204
  })
}

/** Logs out with the token or the cookie. Returns whether the node has confirmed it. */
async function endSession (lane: Lane, { token, cookie, sessionId }: Login): Promise<boolean> {
  const headers: Record<string, string> = lane.random.chance(0.5) ? { authorization: `Bearer ${token}` } : { cookie }
  const reply = await ask(lane, NAME, { method: 'POST', path: '/api/auth/logout', headers })
  if (reply?.status !== 204) return false
  lane.findings.acknowledge('endedSessions', sessionId)
  return true
}
