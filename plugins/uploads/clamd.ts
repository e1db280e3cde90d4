import { connect, type Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'

// https://docs.clamav.net/manual/Usage/Scanning.html#clamd: commands and answers that begin with `z` and end with NUL.
const COMMAND = Buffer.from('zINSTREAM\0')
const END = Buffer.alloc(4)
const TOO_LARGE = 'INSTREAM size limit exceeded. ERROR'
// What clamd reports of files of which it has not looked at everything, if `AlertExceedsMax` is set.
const LIMIT = 'Heuristics.Limits.Exceeded'
const MAX_ANSWER = 1024

/** What clamd says about bytes: the name of what it has found, if it has found something. */
export type Verdict = { is: 'clean' } | { is: 'too large' } | { is: 'malware', name: string }

/** A file for a clamd. */
export interface ScannedFile { readonly bytes: AsyncIterable<Uint8Array>, readonly size: number }

/**
 * Sends a file to a clamd and returns its verdict. Throws if it cannot be reached, answers anything else, or says that
 * the file is clean before all of it was sent. Ends the connection when `signal` aborts.
 * @param place a host and a port, or the path of a socket
 */
export async function askClamd (place: string, { bytes, size }: ScannedFile, signal: AbortSignal): Promise<Verdict> {
  const { text, isSent } = await exchange(place, framesOf(bytes), signal).catch(async (error: unknown) => {
    // A clamd that refuses a file for its size closes the connection while the bytes arrive, and often its answer is
    // lost with it. Told the size alone, it answers.
    const other = await exchange(place, [COMMAND, lengthOf(size)], signal, { end: true }).catch(() => undefined)
    if (other?.text !== TOO_LARGE) throw error
    return other
  })
  const name = /^stream: ([\x20-\x7e]{1,200}) FOUND$/.exec(text)?.[1]
  if (text === TOO_LARGE || name?.startsWith(LIMIT)) return { is: 'too large' }
  if (name !== undefined) return { is: 'malware', name }
  if (text === 'stream: OK' && isSent) return { is: 'clean' }
  throw new Error(`clamd has answered ${JSON.stringify(text)}${isSent ? '' : ' before all bytes were sent'}`)
}

// Returns what clamd answers, and whether it had everything before.
async function exchange (
  place: string, frames: Iterable<Uint8Array> | AsyncIterable<Uint8Array>, signal: AbortSignal, { end = false } = {}
): Promise<{ text: string, isSent: boolean }> {
  const socket = connect({ ...addressOf(place), signal })
  try {
    const answer = readAnswer(socket)
    let isSent = false
    pipeline(frames, socket, { end }).then(() => { isSent = true }, () => {})
    const text = await answer
    return { text, isSent }
  } finally {
    socket.destroy()
  }
}

function addressOf (place: string) {
  if (place.startsWith('/')) return { path: place }
  const colon = place.lastIndexOf(':')
  return { host: place.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(place.slice(colon + 1)) }
}

async function * framesOf (bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield COMMAND
  for await (const chunk of bytes) {
    // A length of 0 would be the end.
    if (chunk.length === 0) continue
    yield lengthOf(chunk.length)
    yield chunk
  }
  yield END
}

function lengthOf (size: number): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(Math.min(size, 0xffff_ffff))
  return length
}

// Listens rather than iterates, because a connection that is reset loses what an iterator has not taken yet.
function readAnswer (socket: Socket): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let answer = ''
  socket.setEncoding('latin1').on('data', (text: string) => {
    answer += text
    if (answer.length > MAX_ANSWER) reject(new Error('The answer of clamd is too long'))
    else if (answer.endsWith('\0')) resolve(answer.slice(0, -1))
  })
  socket.once('error', reject)
  socket.once('close', () => reject(new Error('clamd has closed the connection without an answer')))
  return promise
}
