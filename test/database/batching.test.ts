import fc from 'fast-check'
import t from 'tap'
import { postponed, batchCalls } from '../../db/batching/batching.ts'
import { createUsher } from '../helpers/app.ts'
import { nightly } from '../helpers/nightly.ts'

/**
 * Creates a batched read whose statements the test completes itself. On a busy machine a turn takes long, which must
 * not matter.
 */
function createReads ({ gathering = Infinity } = {}) {
  const statements: { keys: string[], answer: () => void, fail: (error: Error) => void }[] = []
  const read = batchCalls((keys: string[]) => new Promise<(string | undefined)[]>((resolve, reject) => {
    statements.push({
      keys, answer: () => resolve(keys.map((key) => key === 'unknown' ? undefined : `value of ${key}`)), fail: reject,
    })
  }), { gathering })
  return { read, statements }
}

// The number of cases of the model test. `MODEL_CASES=10000 npx tap test/database/batching.test.ts` runs more, which
// takes longer.
const CASES = Number(process.env['MODEL_CASES'] ?? 2000)

const turn = () => new Promise(setImmediate)

/** Resolves after as many turns of the event loop as a batch may collect items. */
async function turns (): Promise<void> {
  for (let count = 0; count < 5; count++) await turn()
}

t.test('SPEED 2 reads of one turn of the event loop are sent as one statement', async (t) => {
  const { read, statements } = createReads()
  const answers = Promise.all([read('a'), read('b'), read('a'), read('unknown')])
  await turns()
  t.strictSame(statements.map(({ keys }) => keys), [['a', 'b', 'unknown']], 'a repeated key is sent once')
  statements[0]!.answer()
  t.strictSame(await answers, ['value of a', 'value of b', 'value of a', undefined])
})

t.test('SPEED 2 a batch is sent as soon as a turn of the event loop adds no items to it', async (t) => {
  const { read, statements } = createReads()
  const answers = [read('1'), read('2')]
  await turn()
  t.equal(statements.length, 0)
  answers.push(read('3'))
  await turn()
  t.equal(statements.length, 0)
  await turn()
  t.strictSame(statements.map(({ keys }) => keys), [['1', '2', '3']])

  const alone = read('alone')
  await turn()
  t.strictSame(statements[1]!.keys, ['alone'], 'nothing was added, so it is sent at once')
  for (const { answer } of statements) answer()
  await Promise.all([...answers, alone])

  const many = []
  for (let count = 0; statements.length === 2; count++) {
    many.push(read(`a${count}`), read(`b${count}`))
    await turn()
  }
  t.equal(many.length, 8, 'the number of turns is limited')
  statements[2]!.answer()
  await Promise.all(many)
})

t.test('SPEED 2 a batch that has gathered for long enough is sent, although items were added', async (t) => {
  const { read, statements } = createReads({ gathering: 0 })
  const answers = Promise.all([read('1'), read('2')])
  await turn()
  t.strictSame(statements.map(({ keys }) => keys), [['1', '2']])
  statements[0]!.answer()
  await answers
})

t.test('SPEED 2 at most two statements are in flight, and items that arrive meanwhile are sent together when one returns', async (t) => {
  const { read, statements } = createReads()
  const first = read('1')
  await turns()
  const second = read('2')
  await turns()
  const third = [read('3'), read('4')]
  await turns()
  const fourth = read('1')
  await turns()
  t.strictSame(statements.map(({ keys }) => keys), [['1'], ['2']])
  statements[1]!.answer()
  t.equal(await second, 'value of 2')
  await turns()
  t.strictSame(statements[2]!.keys, ['3', '4', '1'], 'a key that is in flight is read again')
  statements[2]!.answer()
  t.strictSame(await Promise.all([...third, fourth]), ['value of 3', 'value of 4', 'value of 1'])
  statements[0]!.answer()
  t.equal(await first, 'value of 1')
})

t.test('SPEED 2 a statement that fails rejects the items of its batch only', async (t) => {
  const { read, statements } = createReads()
  const failed = [read('a'), read('b')]
  await turns()
  statements[0]!.fail(new Error('lost'))
  for (const answer of failed) await t.rejects(answer, { message: 'lost' })
  const next = read('a')
  await turns()
  statements[1]!.answer()
  t.equal(await next, 'value of a')

  const throwing = batchCalls(() => { throw new Error('before it is sent') })
  await t.rejects(throwing('a'), { message: 'before it is sent' })
  await t.rejects(throwing('a'), { message: 'before it is sent' }, 'the next call works in the same way')
})

t.test('1.12 a write is rejected if its client is no longer allowed to act when the batch is sent, and the others are sent', async (t) => {
  const written: string[][] = []
  let release = () => {}
  const write = batchCalls(async (rows: string[]) => {
    written.push(rows)
    await new Promise<void>((resolve) => { release = resolve })
    return rows
  }, { inFlight: 1 })
  const client = (isStillAllowed: () => boolean | Promise<boolean>) => ({ destroyed: false, isStillAllowed })
  let live = true
  const first = write('first', client(() => live))
  await turns()
  const waiting = {
    ended: write('ended', client(() => live)),
    asked: write('asked', client(async () => live)),
    unknown: write('unknown', client(async () => { throw new Error('nobody knows') })),
    lives: write('lives', client(() => true)),
    askedAndLives: write('asked and lives', client(async () => true)),
    anonymous: write('anonymous', { destroyed: false }),
  }
  live = false
  release()
  t.equal(await first, 'first', 'a write that was sent before completes')
  await t.rejects(waiting.ended, { code: 'INVALID_TOKEN' })
  await t.rejects(waiting.asked, { code: 'INVALID_TOKEN' })
  await t.rejects(waiting.unknown, { message: 'nobody knows' })
  await turns()
  release()
  t.same(
    await Promise.all([waiting.lives, waiting.askedAndLives, waiting.anonymous]),
    ['lives', 'asked and lives', 'anonymous']
  )
  await t.rejects(write('alone', client(() => false)), { code: 'INVALID_TOKEN' })
  t.same(written, [['first'], ['lives', 'asked and lives', 'anonymous']], 'an empty batch is not sent')
})

t.test('SPEED 2 more than a thousand keys are split into several statements, in order', async (t) => {
  const { read, statements } = createReads()
  const answers = Promise.all(Array.from({ length: 2500 }, (_, index) => read(`${index}`)))
  for (let sent = 1; sent <= 3; sent++) {
    while (statements.length < sent) await turn()
    statements[sent - 1]!.answer()
  }
  t.equal((await answers)[2499], 'value of 2499')
  t.strictSame(statements.map(({ keys }) => keys.length), [1000, 1000, 500])
  t.equal(statements[1]!.keys[0], '1000')
})

nightly('SPEED 2 reads see every write that was acknowledged before they were requested', async (t) => {
  const { app, admin, createUser } = await createUsher(t)
  const base = await app.listen({ port: 0, host: '127.0.0.1' })
  const { id, email } = await createUser()
  const url = `${base}/api/users/${id}`
  const put = (name: string) => fetch(url, {
    method: 'PUT',
    headers: { ...admin.headers, 'content-type': 'application/json' },
    body: JSON.stringify({ name, email }),
  })
  const seen = { version: 0, acknowledged: 0, stale: 0, reads: 0 }

  async function write (): Promise<void> {
    while (seen.version < 300) {
      const mine = ++seen.version
      const { status } = await put(`${mine}`)
      // A node on a busy machine may reject a write. That write counts as not acknowledged.
      if (status === 503) continue
      if (status !== 200) throw new Error(`${status}`)
      // There is only one writer, so the number in the name never decreases.
      seen.acknowledged = mine
    }
  }

  async function read (): Promise<void> {
    while (seen.acknowledged < 300) {
      const before = seen.acknowledged
      const response = await fetch(url)
      const { name } = await response.json() as { name: string }
      if (response.status === 503) continue
      seen.reads++
      if (before > 0 && Number(name) < before) seen.stale++
    }
  }

  await Promise.all([write(), ...Array.from({ length: 16 }, read)])
  t.ok(seen.reads > 300)
  t.equal(seen.stale, 0)
})

t.test('SPEED 2 waiting items are limited in number and in time; items beyond a limit fail with OVERLOADED', async (t) => {
  // The timer of the time limit does not keep the process alive.
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  const sent: string[][] = []
  const answer = Promise.withResolvers<void>()
  const read = batchCalls(async (keys: string[]) => {
    sent.push(keys)
    await answer.promise
    return keys
  }, { inFlight: 1, waiting: 2, timeoutMs: 50 })
  const first = read('first')
  await turns()
  const late = Promise.allSettled([read('a'), read('b')])
  await t.rejects(read('c'), { code: 'OVERLOADED' }, 'too many items wait: it fails at once')
  t.match(
    await late,
    [{ reason: { code: 'OVERLOADED' } }, { reason: { code: 'OVERLOADED' } }],
    'they have waited for too long'
  )
  answer.resolve()
  t.equal(await first, 'first')
  t.equal(await read('d'), 'd')
  t.strictSame(sent, [['first'], ['d']], 'rejected items are not sent')
})

t.test('SPEED 2 items that waited for too long only because the event loop was blocked are sent', async (t) => {
  const timeoutMs = 20
  const stall = () => { for (const since = performance.now(); performance.now() - since < 2 * timeoutMs;); }
  const answers: (() => void)[] = []
  const read = batchCalls(
    (keys: string[]) => new Promise<string[]>((resolve) => { answers.push(() => resolve(keys)) }),
    { inFlight: 1, timeoutMs }
  )
  const first = read('first')
  stall()
  while (answers.length === 0) await turn()
  await turns()

  // The result arrives while the event loop is blocked, and Node.js runs timers before it reads the result.
  const second = read('second')
  setImmediate(() => answers[0]!())
  stall()
  t.equal(await first, 'first')
  while (answers.length === 1) await turn()
  answers[1]!()
  t.equal(await second, 'second')
})

t.test('SPEED 2 items that a statement leaves out are part of the next batch, together with new requests for the same items', async (t) => {
  const calls: string[][] = []
  const returned: (() => void)[] = []
  const read = batchCalls(async (keys: string[]) => {
    calls.push(keys)
    await new Promise<void>((resolve) => returned.push(resolve))
    return keys.map((key, index) => index === 0 ? `${key}${calls.length}` : postponed)
  }, { inFlight: 1 })
  const next = async () => {
    while (returned.length === 0) await new Promise(setImmediate)
    returned.shift()!()
  }
  const gone = { destroyed: false }
  const first = [read('a'), read('b'), read('c', gone)]
  const left = t.rejects(first[2]!, { code: 'CLIENT_DISCONNECTED' })
  while (calls.length === 0) await new Promise(setImmediate)
  const later = [read('d'), read('b')]
  gone.destroyed = true
  await next()
  await next()
  await next()
  t.same(await Promise.all([first[0], first[1], ...later]), ['a1', 'b2', 'd3', 'b2'])
  await left
  t.same(calls, [['a', 'b', 'c'], ['b', 'd'], ['d']])
})

t.test('SPEED 2 items of disconnected clients are not sent unless another client waits for the same item', async (t) => {
  const { read, statements } = createReads()
  const [gone, here] = [{ destroyed: false }, { destroyed: false }]
  const answers = Promise.allSettled([read('dropped', gone), read('shared', gone), read('shared', here), read('own')])
  gone.destroyed = true
  await turns()
  t.strictSame(statements[0]!.keys, ['shared', 'own'])
  statements[0]!.answer()
  t.match(await answers, [
    { reason: { code: 'CLIENT_DISCONNECTED' } }, { value: 'value of shared' }, { value: 'value of shared' },
    { value: 'value of own' },
  ])

  const last = read('dropped', gone)
  await t.rejects(last, { code: 'CLIENT_DISCONNECTED' })
  t.equal(statements.length, 1, 'no statement is sent')
})

t.test('SPEED 3 each write of a batch has its own result', async (t) => {
  const write =
    batchCalls(async (items: { value: number }[]) => items.map(({ value }) => value < 0 ? new Error('refused') : value))
  const item = { value: 1 }
  const results = await Promise.allSettled([write(item), write({ value: 1 }), write({ value: -1 })])
  t.match(results, [{ value: 1 }, { value: 1 }, { reason: { message: 'refused' } }])
})

t.test('SPEED 2 for any order of writes and reads, a read sees every write that was acknowledged before it', async (t) => {
  // The database is a map of versions. A statement sees its state at some moment between being sent and returning.
  const operation = fc.oneof(
    fc.record({ write: fc.constantFrom('a', 'b', 'c') }), fc.record({ read: fc.constantFrom('a', 'b', 'c') })
  )
  let cases = 0
  await fc.assert(fc.asyncProperty(fc.scheduler(), fc.array(operation, { minLength: 1, maxLength: 12 }), async (
    scheduler, operations
  ) => {
    cases++
    const stored = new Map<string, number>()
    const acknowledged = new Map<string, number>()
    const stale: string[] = []
    const read = batchCalls(async (keys: string[]) => {
      await scheduler.schedule(Promise.resolve(), 'on its way')
      const seen = keys.map((key) => stored.get(key) ?? 0)
      await scheduler.schedule(Promise.resolve(), 'on its way back')
      return seen
    }, { timeoutMs: Infinity })
    async function run (operation: { write: string } | { read: string }): Promise<void> {
      if ('write' in operation) {
        const version = (stored.get(operation.write) ?? 0) + 1
        stored.set(operation.write, version)
        await scheduler.schedule(Promise.resolve(), 'commit')
        acknowledged.set(operation.write, Math.max(version, acknowledged.get(operation.write) ?? 0))
      } else {
        const before = acknowledged.get(operation.read) ?? 0
        const seen = await read(operation.read)
        if (seen < before) stale.push(operation.read)
      }
    }
    const { task } = scheduler.scheduleSequence(
      operations.map((operation) => async () => { running.push(run(operation)) })
    )
    const running: Promise<void>[] = []
    const state = { done: false }
    const all = task.then(() => Promise.all(running)).then(() => { state.done = true })
    while (!state.done) {
      if (scheduler.count() > 0) await scheduler.waitOne()
      // Waiting batches can be sent between any two of these steps.
      await turn()
    }
    await all
    return stale.length === 0
  }), { numRuns: CASES })
  t.equal(cases, CASES)
})
