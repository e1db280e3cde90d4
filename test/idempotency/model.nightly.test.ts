import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { create, createTwo } from '../helpers/idempotency.ts'
import { openSql } from '../helpers/sql.ts'

// The number of cases. `MODEL_CASES=10000 npx tap --timeout=900 test/idempotency/model.nightly.test.ts` runs more,
// which takes longer.
const CASES = Number(process.env['MODEL_CASES'] ?? 40)
const KEYS = 3
const PEOPLE = 3

/** The creation of a user with a key, or the deletion of the user who had an address when the round began. */
interface Operation { kind: 'create' | 'delete', key: number, person: number, node: number }

/** Which creation each key has performed, and which user has each address. */
interface State {
  readonly stored: readonly ({ person: number, id: string } | undefined)[]
  readonly ids: readonly (string | undefined)[]
}

interface Result { status: number, code: string | undefined, id: string | undefined, isReplayed: boolean }

const operation: fc.Arbitrary<Operation> = fc.record({
  kind: fc.constantFrom('create', 'create', 'create', 'create', 'delete'),
  key: fc.nat(KEYS - 1),
  person: fc.nat(PEOPLE - 1),
  node: fc.nat(1),
})

const nodes = await createTwo(t)
const { inject, admin } = nodes[0]
const sql = openSql(t, nodes[0])

async function perform ({ kind, key, person, node }: Operation, { ids }: State, prefix: string): Promise<Result> {
  const response = kind === 'create'
    ? await create(nodes[node]!, `${prefix}-${key}`, { name: 'Ada', email: `${prefix}-${person}@example.com` })
    : await inject('DELETE', `/api/users/${ids[person] ?? randomUUID()}`, { headers: admin.headers })
  const { id, code } = response.body === '' ? {} as Record<string, undefined> : response.json()
  return { status: response.statusCode, code, id, isReplayed: response.headers['idempotency-replayed'] === 'true' }
}

// Returns the states after an operation that the model allows to have this result in this state. After 503, it may have
// been performed, and then the created user has one of the ids that were seen.
function after (
  state: State, { kind, key, person }: Operation, { status, code, id, isReplayed }: Result,
  seen: readonly (string | undefined)[]
): State[] {
  const { stored, ids } = state
  if (kind === 'delete') {
    const deleted = { stored, ids: ids.with(person, undefined) }
    if (status === 503) return [state, deleted]
    if (status === 404) return ids[person] === undefined ? [state] : []
    return status === 204 && ids[person] !== undefined ? [deleted] : []
  }
  const created = (id: string): State => ({ stored: stored.with(key, { person, id }), ids: ids.with(person, id) })
  const first = stored[key]
  // The request has waited for another one with its key for a second.
  if (code === 'IDEMPOTENCY_KEY_IN_USE') return [state]
  if (status === 503) {
    return first || ids[person] !== undefined ? [state] : [state, ...seen.filter((id) => id !== undefined).map(created)]
  }
  if (first && first.person !== person) return status === 422 ? [state] : []
  if (first && !ids.includes(first.id)) return status === 410 ? [state] : []
  if (first) return status === 201 && isReplayed && id === first.id ? [state] : []
  if (ids[person] !== undefined) return status === 409 && code === 'EMAIL_TAKEN' ? [state] : []
  return status === 201 && !isReplayed ? [created(id!)] : []
}

// Returns a state in which the operations could have resulted, one after the other in any order, and that has these
// users.
function explain (
  state: State, users: readonly (string | undefined)[], done: readonly [Operation, Result][],
  seen: readonly (string | undefined)[]
): State | undefined {
  if (done.length === 0) return users.every((id, person) => id === state.ids[person]) ? state : undefined
  for (const [index, [operation, result]] of done.entries()) {
    for (const next of after(state, operation, result, seen)) {
      const explained = explain(next, users, done.toSpliced(index, 1), seen)
      if (explained) return explained
    }
  }
}

t.test('10.4 for any concurrent requests with any keys on two nodes, there is an order that explains all results', async (t) => {
  let unavailable = 0
  let performed = 0
  const rounds = fc.array(fc.array(operation, { minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 3 })
  await fc.assert(fc.asyncProperty(rounds, async (rounds) => {
    const prefix = randomUUID()
    let state: State = {
      stored: Array.from({ length: KEYS }, () => undefined), ids: Array.from({ length: PEOPLE }, () => undefined),
    }
    for (const operations of rounds) {
      // Two deletions of a user are explained like any others, but the second one finds no user.
      const results = await Promise.all(operations.map((operation) => perform(operation, state, prefix)))
      performed += results.length
      unavailable += results.filter(({ status, code }) => status === 503 || code === 'IDEMPOTENCY_KEY_IN_USE').length
      const rows = await sql`select id, email from users where email like ${`${prefix}-%`}`
      const users = state.ids.map((_, person) =>
        rows.find(({ email }) => email === `${prefix}-${person}@example.com`)?.['id'] as string | undefined)
      const done = operations.map((operation, index) => [operation, results[index]!] as [Operation, Result])
      const next = explain(state, users, done, [...users, ...results.map(({ id }) => id)])
      if (!next) throw new Error(JSON.stringify({ state, users, done }, null, 1))
      state = next
    }
  }), { numRuns: CASES })
  // A machine that is too busy may stall the database for a moment.
  t.ok(unavailable <= performed / 50, `${unavailable} of ${performed}`)
})
