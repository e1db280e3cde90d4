import type { Socket } from 'node:net'

// PostgreSQL's protocol, version 3: https://www.postgresql.org/docs/current/protocol-message-formats.html
const AUTHENTICATION = 'R'.charCodeAt(0)
const ALLOWED = new Set([...'REN'].map((type) => type.charCodeAt(0)))
const HEADER_BYTES = 5
const MAX_MESSAGE_BYTES = 10_000
// The mechanisms, the challenge, the server's proof that it knows the password, and success.
const [MECHANISMS, CHALLENGE, PROOF, SUCCESS] = [10, 11, 12, 0]
const STEPS = [MECHANISMS, CHALLENGE, PROOF, SUCCESS]
// PostgreSQL's default is 4096. The client computes them without a pause.
const MAX_ITERATIONS = 1_000_000

/**
 * Destroys the socket of a postgres.js client if the server does anything but authenticate with SCRAM-SHA-256.
 * postgres.js itself would send the password to every server that asks for it in clear text, and would believe one that
 * asks for nothing. It verifies the server's proof, which is the only part of SCRAM that is not checked here. Until
 * then it gets one message at a time, and nothing after a message that is refused.
 */
export function requireScram (socket: Socket): Socket {
  const { emit } = socket
  const forward = (bytes: Buffer): boolean => Reflect.apply(emit, socket, ['data', bytes])
  let received: Buffer = Buffer.alloc(0)
  let step = 0

  socket.emit = (event: string | symbol, ...args: unknown[]): boolean => {
    if (event !== 'data') return Reflect.apply(emit, socket, [event, ...args])
    received = Buffer.concat([received, args[0] as Buffer])
    while (received.length >= HEADER_BYTES && step < STEPS.length) {
      const end = 1 + received.readUInt32BE(1)
      if (!ALLOWED.has(received[0]!) || end > MAX_MESSAGE_BYTES) return refuse()
      if (received.length < end) return true
      const message = received.subarray(0, end)
      if (message[0] === AUTHENTICATION && !isExpected(message, STEPS[step++]!)) return refuse()
      received = received.subarray(end)
      forward(message)
    }
    // postgres.js has destroyed the socket if the proof is wrong.
    if (step === STEPS.length && !socket.destroyed) {
      socket.emit = emit
      if (received.length > 0) forward(received)
    }
    return true
  }

  function refuse (): true {
    const message = 'The server does not authenticate with SCRAM-SHA-256, so it gets no password'
    socket.destroy(Object.assign(new Error(message), { code: 'SCRAM_REQUIRED' }))
    return true
  }

  return socket
}

function isExpected (message: Buffer, step: number): boolean {
  if (message.length < HEADER_BYTES + 4 || message.readUInt32BE(HEADER_BYTES) !== step) return false
  if (step !== CHALLENGE) return true
  const [, iterations] = /(?:^|,)i=(\d{1,9})(?:,|$)/.exec(message.toString('latin1', HEADER_BYTES + 4)) ?? []
  return iterations !== undefined && Number(iterations) <= MAX_ITERATIONS
}
