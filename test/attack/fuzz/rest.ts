import type { Actor } from '../actors.ts'
import { adminMark, forbiddenMark, type Attack, type Lane } from '../context.ts'
import { describe, exchange, type Request } from '../exchange.ts'
import type { Operation } from '../operations.ts'
import { judge, type Verdict } from '../policy.ts'
import type { Reply } from '../reply-parser.ts'
import type { Random } from '../random.ts'
import { generateValue, hostileJson, hostileTexts, writeJson } from '../values.ts'

const NAME = 'rest'
const PIPELINED = 8
// These operations cost a password hash or end in the tarpit. More of them would only slow down the run.
const EXPENSIVE = /login|password/
const RARELY = 0.05
// An attack must not end a live session of its generator.
const ENDS_SESSION = /logout|refresh/
const uuid = (random: Random) => random.bytes(16).toString('hex')
  .replace(/(.{8})(.{4}).(.{3}).(.{3})(.{12})/, '$1-$2-7$3-8$4-$5')

interface Probe { operation: Operation, actor: Actor, request: Request, verdict: Verdict | undefined }

/** Requests to every documented route, generated from its schema and sent by every kind of actor. */
export const rest: Attack = {
  name: NAME,
  weight: 100,
  async run (lane) {
    const probes = Array.from({ length: 1 + lane.random.below(PIPELINED) }, () => generate(lane))
    // This is recorded before the reply, which may be lost.
    for (const { operation, request } of probes) {
      if (operation.name === 'DELETE /api/users/{id}') lane.findings.forget('users', request.path.split('/').at(-1)!)
    }
    const replies = await exchange(lane, NAME, probes.map(({ request }) => request))
    probes.forEach((probe, index) => {
      const reply = replies[index]
      if (!reply) return
      checkVerdict(lane, probe, reply)
      checkShape(lane, probe, reply)
      if (reply.status === 201 && probe.operation.name === 'POST /api/users') remember(lane, reply)
    })
  },
}

function generate (lane: Lane): Probe {
  const { random, cast, shared: { operations } } = lane
  let operation = random.pick(operations)
  while (operation.isForm || (EXPENSIVE.test(operation.path) && !random.chance(RARELY))) {
    operation = random.pick(operations)
  }
  const actor = pickActor(lane, operation)
  const id = pickId(lane, operation, actor)
  const query = generateQuery(random, operation)
  const body = operation.body === undefined ? undefined : generateBody(random, operation, actor)
  const verdict = isOrdinary(id)
    ? judge(actor, { operation: operation.name, isPublic: operation.isPublic, id, query, body })
    : undefined
  mark(random, body, actor, verdict)
  const search = new URLSearchParams(query).toString()
  const sessionId = actor.isLive && actor.role === 'admin' ? uuid(random) : random.pick(cast.world.victimSessions)
  const filled = operation.path.replace('{id}', isOrdinary(id) ? id : encodeURIComponent(id.toWellFormed()))
    .replace('{sessionId}', sessionId)
  const path = `${filled}${search && `?${search}`}`
  const request = {
    method: operation.method,
    path,
    actor,
    ...writeBody(random, body, { mayBreak: verdict !== 'forbidden' && !(isRecord(body) && body['role'] === 'admin') }),
  }
  return { operation, actor, request, verdict }
}

const isOrdinary = (id: string) => /^[\w-]*$/.test(id)

function pickActor ({ random, cast }: Lane, { name, path, isPublic }: Operation): Actor {
  const mustNotLive = ENDS_SESSION.test(path)
  if (isPublic && random.chance(0.7)) return cast.anonymous
  if (mustNotLive || random.chance(0.3)) return random.chance(0.2) ? cast.anonymous : random.pick(cast.rejected)
  // The admin's own sessions must stay.
  return random.chance(0.5) && name !== 'DELETE /api/auth/sessions' ? cast.admin : cast.member(random.below(100))
}

// An actor who may change something only gets ids of what may be changed.
function pickId ({ random, shared, cast: { world } }: Lane, { name }: Operation, { isLive, id, role }: Actor): string {
  if (random.chance(0.1)) return random.pick(hostileTexts)
  if (random.chance(0.1)) return uuid(random)
  const reads = name.startsWith('GET')
  if (name.includes('/uploads/')) return random.pick([...world.victimUploads, ...shared.uploads.slice(-20)])
  if (name.includes('/auth/sessions/')) {
    return role === 'admin' && isLive ? uuid(random) : random.pick(world.victimSessions)
  }
  if (isLive && role === 'admin' && !reads) return take(random, shared.expendable, name) ?? uuid(random)
  if (isLive && !reads && name.startsWith('PUT') && random.chance(0.4)) {
    return random.chance(0.2) ? id!.toUpperCase() : id!
  }
  return random.pick(reads ? [...world.readers.slice(0, 50), ...world.victims] : world.victims)
}

function take (random: Random, ids: string[], name: string): string | undefined {
  if (ids.length === 0) return undefined
  const at = random.below(ids.length)
  return name.startsWith('DELETE') ? ids.splice(at, 1)[0] : ids[at]
}

function generateQuery (random: Random, { query }: Operation): Record<string, string> {
  const chosen = query.filter(() => random.chance(0.4))
  const entries = chosen.map(({ name, schema }) => [name, writeParameter(generateValue(random, schema, name))])
  // Long pages are a separate attack.
  return Object.fromEntries(entries.map(([name, value]) =>
    name === 'limit' && Number(value) > 100 && random.chance(0.9) ? [name, '20'] : [name, value]))
}

function writeParameter (value: unknown): string {
  return (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, 2000).toWellFormed()
}

function generateBody (random: Random, { name, body }: Operation, actor: Actor): unknown {
  if (random.chance(0.03)) return JSON.parse(random.pick(hostileJson))
  const generated = generateValue(random, body!)
  // The passwords of members must not change, and hashing is a separate attack.
  if (isRecord(generated) && 'password' in generated && (name === 'PUT /api/auth/password' || !random.chance(RARELY))) {
    if (name === 'PUT /api/auth/password') generated['currentPassword'] = `wrong-${random.word()}`
    else delete generated['password']
  }
  // Users with the role admin must have a mark, which only creations add.
  if (isRecord(generated) && /^(PUT|PATCH)/.test(name) && actor.isLive && actor.role === 'admin' &&
    generated['role'] === 'admin') {
    generated['role'] = 'user'
  }
  return generated
}

function mark (random: Random, body: unknown, actor: Actor, verdict: Verdict | undefined): void {
  if (!isRecord(body)) return
  if (verdict === 'unauthenticated' || verdict === 'forbidden') body['name'] = forbiddenMark(random)
  else if (body['role'] === 'admin' && actor.role === 'admin') body['name'] = adminMark(random)
}

// Breaking the text must not remove a mark or turn a forbidden request into a permitted one.
function writeBody (
  random: Random, body: unknown, { mayBreak }: { mayBreak: boolean }
): Pick<Request, 'headers' | 'body'> {
  if (body === undefined) return {}
  const type = random.chance(0.95)
    ? 'application/json'
    : random.pick(['text/plain', 'application/xml', '', 'application/json; charset=utf-16', 'multipart/form-data'])
  return { headers: { 'content-type': type }, body: mayBreak ? writeJson(random, body) : JSON.stringify(body) }
}

function checkVerdict (
  { findings }: Lane, { operation, actor, request, verdict }: Probe, { status, body }: Reply
): void {
  const report = (kind: 'authorization' | 'wrongly-refused' | 'contract', what: string) =>
    findings.violation(
      kind, NAME, `${operation.name} by ${actor.kind}: ${what}, got ${status} ${body.slice(0, 200)}`, describe(request)
    )
  if (verdict === 'unauthenticated' && status < 400) report('authorization', 'must be 401')
  else if (verdict === 'unauthenticated' && status !== 401 && status !== 503) report('contract', 'must be 401')
  else if (verdict === 'forbidden' && status < 400) report('authorization', 'must be 403')
  else if ((verdict === 'allowed' || verdict === 'forbidden') &&
    status === 401) report('wrongly-refused', 'the token is valid')
  else if (verdict === 'allowed' && status === 403 &&
    !body.includes('WRONG_PASSWORD')) report('wrongly-refused', 'is permitted')
}

function checkShape ({ findings }: Lane, { request }: Probe, { status, body }: Reply): void {
  if (status < 400) return
  const parsed = parse(body)
  const isRight = status === 400
    ? isRecord(parsed) && Array.isArray(parsed['errors']) && parsed['errors'].length > 0 &&
      parsed['errors'].every((error) => typeof error === 'string')
    : isRecord(parsed) && typeof parsed['error'] === 'string'
  if (!isRight) {
    findings.violation('contract', NAME, `the shape of a ${status}: ${body.slice(0, 300)}`, describe(request))
  }
}

function remember ({ findings, shared }: Lane, { body }: Reply): void {
  const { id, role } = JSON.parse(body) as { id: string, role: string }
  findings.acknowledge('users', id)
  if (role === 'user') shared.expendable.push(id)
}

function parse (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isRecord (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
