import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { entityTag } from '../../schema/http/entity-tag.ts'
import { createUsher } from '../helpers/app.ts'
import { openSql } from '../helpers/sql.ts'

// The number of cases. `MODEL_CASES=10000 npx tap test/users/model.nightly.test.ts` runs more, which takes longer.
const CASES = Number(process.env['MODEL_CASES'] ?? 60)
const USERS = 3

// Whatever changes a user also gives the user a name of its own, so the name tells which write was the last one. Null:
// deleted.
type State = string | null

interface Operation {
  kind: 'replace' | 'patch' | 'move' | 'promote' | 'demote' | 'nothing' | 'read' | 'delete'
  user: number
  node: number
  /** `stale` is a version that the user had at some time, `other` the version of another user. */
  tag: 'absent' | 'any' | 'current' | 'stale' | 'other' | 'weak' | 'several'
}

interface Result {
  status: number
  code: string | undefined
  /** The state that the response shows. */
  shown: State
  /** The name that the operation gives the user if it succeeds. */
  name: string
  /** The states in which the tag permits the operation; undefined for all in which the user exists. */
  permitted: State[] | undefined
}

const operation: fc.Arbitrary<Operation> = fc.record({
  kind: fc.oneof(
    { weight: 10, arbitrary: fc.constantFrom('replace' as const, 'patch' as const) },
    {
      weight: 4,
      arbitrary: fc.constantFrom(
        'move' as const, 'promote' as const, 'demote' as const, 'nothing' as const, 'read' as const
      ),
    },
    { weight: 1, arbitrary: fc.constant('delete' as const) }),
  user: fc.nat(USERS - 1),
  node: fc.nat(1),
  tag: fc.constantFrom('absent', 'any', 'current', 'current', 'current', 'stale', 'other', 'weak', 'several'),
})

const usher = await createUsher(t)
const nodes = [usher, await createUsher(t, usher.options)]
const sql = openSql(t, usher)
const { headers } = usher.admin

/** A user, and which state each of the versions belongs to. */
interface Known { id: string, email: string, state: State, versions: Map<State, string> }

async function createKnown (): Promise<Known> {
  const payload = { name: `First ${randomUUID()}`, email: `${randomUUID()}@example.com` }
  const { id, email } = (await usher.inject('POST', '/api/users', { headers, payload })).json()
  return { id, email, state: payload.name, versions: new Map() }
}

async function observe (users: Known[]): Promise<void> {
  const rows = await sql`select id, name, email, row_version::text as version from users where id = any(${users.map(({ id }) => id)})`
  for (const user of users) {
    const row = rows.find(({ id }) => id === user.id)
    user.state = row?.['name'] ?? null
    if (row) Object.assign(user, { email: row['email'] }).versions.set(user.state, row['version'])
  }
}

const tagFor = (user: Known, state: State) => entityTag(user.versions.get(state) ?? '1')

function tagOf (
  tag: Operation['tag'], user: Known, other: Known
): Pick<Result, 'permitted'> & { tag: string | undefined } {
  const [stale = null] = user.versions.keys()
  switch (tag) {
    case 'absent': return { tag: undefined, permitted: undefined }
    case 'any': return { tag: '*', permitted: undefined }
    case 'current': return { tag: tagFor(user, user.state), permitted: [user.state] }
    case 'stale': return { tag: tagFor(user, stale), permitted: [stale] }
    case 'other': return { tag: tagFor(other, other.state), permitted: [] }
    case 'weak': return { tag: `W/${tagFor(user, user.state)}`, permitted: [] }
    case 'several':
      return { tag: `${tagFor(user, stale)}, W/"x", ${tagFor(user, user.state)}`, permitted: [stale, user.state] }
  }
}

async function perform ({ kind, node, tag: how }: Operation, user: Known, other: Known): Promise<Result> {
  const name = `${kind} ${randomUUID()}`
  const { inject } = nodes[node]!
  const path = `/api/users/${user.id}`
  const { tag, permitted } = tagOf(how, user, other)
  const [method, payload] = requestOf(kind, name, user.email)
  const given = {
    headers: { ...headers, ...method !== 'GET' && tag !== undefined && { 'if-match': tag } }, ...payload && { payload },
  }
  const response = await inject(method, path, given)
  const { name: shown = null, code } = response.body === '' ? {} : response.json() as { name?: string, code?: string }
  return { status: response.statusCode, code, shown, name, permitted: method === 'GET' ? undefined : permitted }
}

function requestOf (
  kind: Operation['kind'], name: string, email: string
): ['GET' | 'PUT' | 'PATCH' | 'DELETE', object?] {
  switch (kind) {
    case 'read': return ['GET']
    case 'delete': return ['DELETE']
    case 'nothing': return ['PATCH', {}]
    case 'patch': return ['PATCH', { name }]
    case 'replace': return ['PUT', { name, email }]
    case 'move': return ['PUT', { name, email: `${randomUUID()}@example.com` }]
    case 'promote': return ['PATCH', { name, role: 'admin' }]
    case 'demote': return ['PUT', { name, email, role: 'user' }]
  }
}

// Returns the states after an operation that the model allows to have this result in this state. After 503, there are
// two.
function after (state: State, { kind }: Operation, { status, shown, name, permitted }: Result): State[] {
  if (state === null) return [404, 503].includes(status) ? [null] : []
  if (permitted && !permitted.includes(state)) return [412, 503].includes(status) ? [state] : []
  const next = kind === 'delete' ? null : kind === 'nothing' || kind === 'read' ? state : name
  if (status === 503) return [state, next]
  return kind === 'delete' ? status === 204 ? [null] : [] : status === 200 && shown === next ? [next] : []
}

// Returns whether the operations could have taken effect one after the other, in any order.
function isExplained (from: State, to: State, done: readonly [Operation, Result][]): boolean {
  if (done.length === 0) return from === to
  return done.some(([operation, result], index) => {
    return after(from, operation, result).some((next) => isExplained(next, to, done.toSpliced(index, 1)))
  })
}

t.test('10.2 for any concurrent changes with any tags on two nodes, there is an order that explains all results', async (t) => {
  let [cases, performed] = [0, 0]
  const unavailable: object[] = []
  const users: Known[] = await Promise.all(Array.from({ length: USERS }, createKnown))
  const rounds = fc.array(fc.array(operation, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 3 })
  await fc.assert(fc.asyncProperty(rounds, async (rounds) => {
    cases++
    for (const operations of rounds) {
      for (const [index, { state }] of users.entries()) if (state === null) users[index] = await createKnown()
      await observe(users)
      const before = users.map(({ state }) => state)
      const results = await Promise.all(
        operations.map((operation) => perform(operation, users[operation.user]!, users[(operation.user + 1) % USERS]!))
      )
      performed += results.length
      for (const [place, { status, code }] of results.entries()) {
        if (status === 503) unavailable.push({ code, ...operations[place] })
      }
      await observe(users)
      for (const [index, { state }] of users.entries()) {
        const done = operations.map((operation, place) => [operation, results[place]!] as [Operation, Result])
          .filter(([{ user }]) => user === index)
        if (!isExplained(before[index]!, state, done)) {
          throw new Error(JSON.stringify({ before: before[index], after: state, done }, null, 1))
        }
      }
    }
  }), { numRuns: CASES })
  t.ok(cases >= CASES)
  // A machine that is too busy may stall the database for a moment.
  t.ok(unavailable.length <= performed / 50, JSON.stringify(unavailable))
})
