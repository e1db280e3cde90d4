import type { Actor } from '../actors.ts'
import { forbiddenMark, type Attack, type Lane } from '../context.ts'
import { awaitReply, check } from '../exchange.ts'
import type { Random } from '../random.ts'
import { hostileTexts } from '../values.ts'

const NAME = 'multipart'
const MANY_PARTS = 150
const LARGE_BYTES = 300_000

interface Form { body: Buffer, type: string }

/** Uploads that are valid, malformed, truncated or have many parts, sent in pieces of any size. */
export const multipart: Attack = {
  name: NAME,
  weight: 6,
  async run (lane) {
    const { random, cast, findings } = lane
    const actor = random.chance(0.6)
      ? cast.member(random.below(100))
      : random.chance(0.3) ? cast.anonymous : random.pick(cast.rejected)
    const form = generateForm(random, actor)
    const connection = await lane.open()
    const reply = connection.reply()
    reply.catch(() => {})
    const isCut = await sendForm(lane, (bytes) => connection.send(bytes), form, actor)
    if (isCut && random.chance(0.5)) {
      findings.count(NAME, 'aborted')
      return connection.close()
    }
    if (isCut) connection.socket.end()
    const received = await awaitReply(reply)
    await connection.close()
    if (!received) return findings.count(NAME, 'closed')
    const request = `${form.type}\n${form.body.toString('latin1').slice(0, 500)}`
    check(lane, NAME, received, () => request)
    const { status, body } = received
    if (status === 200 && !actor.isLive) {
      findings.violation('authorization', NAME, `an upload by ${actor.kind} was stored`, request)
    }
    // Node.js rejects the body of a client that has disconnected as soon as it notices, possibly before the token is
    // checked.
    const isMalformed = isCut && status === 400
    if (!actor.isLive && status !== 401 && !isMalformed) {
      findings.violation('contract', NAME, `an upload by ${actor.kind} must be 401, got ${status}`, request)
    }
    if (actor.isLive && status === 401) findings.violation('wrongly-refused', NAME, 'the token is valid', request)
    if (status === 200 && isCut) findings.violation('contract', NAME, 'a truncated upload was stored', request)
    if (status === 200 && actor.isLive) keep(lane, JSON.parse(body) as { id: string })
  },
}

function keep ({ findings, shared }: Lane, { id }: { id: string }): void {
  findings.acknowledge('uploads', id)
  shared.uploads.push(id)
}

function generateForm (random: Random, actor: Actor): Form {
  const boundary = random.chance(0.9) ? `----${random.word(16)}` : random.pick(['a', 'x'.repeat(70), "'()+_,-./:=?"])
  const description = actor.isLive
    ? (random.chance(0.8) ? `may-${random.word()}` : random.pick(hostileTexts))
    : forbiddenMark(random)
  const fields = [writeField(boundary, 'description', description), writeFile(random, boundary)]
  if (random.chance(0.3)) fields.reverse()
  for (let extra = random.chance(0.1) ? random.below(MANY_PARTS) : 0; extra > 0; extra--) {
    fields.push(writeField(boundary, random.pick(['x', 'file', 'description', '__proto__', '']), 'x'))
  }
  if (random.chance(0.1)) fields.splice(random.below(fields.length), 1)
  if (random.chance(0.1)) fields.push(writeFile(random, boundary))
  const isComplete = random.chance(0.9)
  const whole = Buffer.concat([...fields, Buffer.from(isComplete ? `--${boundary}--\r\n` : '')])
  const body = random.chance(0.1) ? Buffer.from(random.mutate(whole.toString('latin1')), 'latin1') : whole
  const type = random.chance(0.93)
    ? `multipart/form-data; boundary=${/^[\w-]+$/.test(boundary) ? boundary : `"${boundary}"`}`
    : random.pick([
      'multipart/form-data', 'multipart/form-data; boundary=', 'multipart/mixed; boundary=a', 'application/json',
      `multipart/form-data; boundary=${'b'.repeat(300)}`,
    ])
  return { body, type }
}

function writeField (boundary: string, name: string, value: string): Buffer {
  return Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
}

function writeFile (random: Random, boundary: string): Buffer {
  const name = random.chance(0.7)
    ? `${random.word()}.txt`
    : random.pick(['../../etc/passwd', '..\\..\\boot.ini', '', '.', '\u202egpj.exe', 'a'.repeat(300), 'x\0.png', 'CON'])
  const size = random.chance(0.03) ? LARGE_BYTES : random.below(2000)
  const type = random.pick(['text/plain', 'image/png', 'application/octet-stream', 'text/html', 'x'])
  return Buffer.concat([
    Buffer.from(
      `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${name}"\r\ncontent-type: ${type}\r\n\r\n`
    ),
    random.chance(0.5) ? Buffer.alloc(size, 'text ') : Buffer.alloc(size, random.bytes(64)), Buffer.from('\r\n'),
  ])
}

/** Sends the form in one or several pieces. Returns whether it was truncated. */
async function sendForm (
  { random }: Lane, send: (bytes: Buffer) => void, { body, type }: Form, { authorization }: Actor
): Promise<boolean> {
  const isChunked = random.chance(0.3)
  const isCut = random.chance(0.15)
  const framing = isChunked ? 'transfer-encoding: chunked' : `content-length: ${body.length}`
  const head = ['POST /api/uploads HTTP/1.1', 'host: localhost', 'connection: close', `content-type: ${type}`, framing]
  if (authorization !== undefined) head.push(`authorization: ${authorization}`)
  send(Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'))
  const sent = isCut ? body.subarray(0, random.below(body.length)) : body
  for (let at = 0; at < sent.length;) {
    const piece = sent.subarray(at, at += random.chance(0.7) ? sent.length : 1 + random.below(4000))
    send(
      isChunked ? Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]) : piece
    )
    // Waiting makes the pieces arrive separately.
    if (at < sent.length) await new Promise((resolve) => setImmediate(resolve))
  }
  if (isChunked && !isCut) send(Buffer.from('0\r\n\r\n'))
  return isCut
}
