import t from 'tap'
import { DocumentBudget } from '../../routes/graphql/limits/document-budget.ts'
import { OperationQueue } from '../../routes/graphql/limits/operation-queue.ts'
import { networksOf } from '../../schema/http/network.ts'

const at = (name: string) => [{ name, factor: 1 }]

t.test('1.13 operations run concurrently up to a total cost, the others wait, and networks take turns', async (t) => {
  const turns = new OperationQueue(100, { load: { isBusy: false } })
  t.same([turns.isFree(2), turns.isFree(3)], [true, false])
  const [first, second] = [await turns.enter(60, at('a')), await turns.enter(40, at('a'))]
  const started: string[] = []
  const ends: (() => void)[] = []
  const waiting = ['a1', 'a2', 'a3', 'b1', 'b2'].map(async (name) => {
    const end = await turns.enter(100, at(name[0]!))
    started.push(name)
    ends.push(end)
  })
  second()
  second()
  await new Promise(setImmediate)
  t.same(started, [], 'a turn ends once')
  first()
  for (let count = 1; count <= 5; count++) {
    await new Promise(setImmediate)
    t.equal(started.length, count)
    ends.at(-1)!()
  }
  await Promise.all(waiting)
  t.same(started, ['a1', 'b1', 'a2', 'b2', 'a3'])
  ;(await turns.enter(100, at('a')))()
})

t.test('1.13 while the node is busy, cheaper operations overtake the most costly ones', async (t) => {
  const load = { isBusy: true }
  const turns = new OperationQueue(100, { load })
  const started: string[] = []
  const run = async (name: string, cost: number) => {
    const end = await turns.enter(cost, at('one network'))
    started.push(name)
    end()
  }
  await run('first', 50)
  const second = run('second', 50)
  await run('third', 10)
  t.same(started, ['first', 'third'])
  load.isBusy = false
  await second
  load.isBusy = true
  await Promise.all([run('fourth', 50), run('fifth', 50)])
  t.same(started, ['first', 'third', 'second', 'fourth', 'fifth'], 'some start also while the node stays busy')
})

t.test('1.13 an operation waits for a limited time, and a limited number of operations wait', async (t) => {
  const turns = new OperationQueue(100, { maxWaiting: 2, timeoutMs: 1, load: { isBusy: false } })
  const end = await turns.enter(100, at('a'))
  const refused = { code: 'OVERLOADED' }
  await Promise.all(['a', 'a', 'b'].map((network) => t.rejects(turns.enter(100, at(network)), refused)))
  end()
  const next = await turns.enter(100, at('b'))
  next()
})

t.test('1.13 an operation that is discarded leaves the queue, and does not enter it', async (t) => {
  const turns = new OperationQueue(100, { load: { isBusy: false } })
  const end = await turns.enter(100, at('a'))
  const discarding = new AbortController()
  const refused = { code: 'CLIENT_DISCONNECTED' }
  const discarded = t.rejects(turns.enter(100, at('a'), discarding.signal), refused)
  const kept = turns.enter(60, at('a'), new AbortController().signal)
  t.equal(turns.waiting, 2)
  discarding.abort()
  await discarded
  t.equal(turns.waiting, 1)
  await t.rejects(turns.enter(100, at('a'), discarding.signal), refused)
  end()
  ;(await kept)()
  t.same([turns.waiting, turns.running], [0, 0])
})

t.test('1.13 a network whose operations fill the room does not keep those of others from waiting', async (t) => {
  const turns = new OperationQueue(100, { maxWaiting: 10, load: { isBusy: false } })
  const end = await turns.enter(100, at('a'))
  const outcomes: string[] = []
  const enter = async (name: string) => {
    const end = await turns.enter(100, at(name[0]!)).catch(() => undefined)
    outcomes.push(end ? name : `${name} rejected`)
    end?.()
  }
  const flood = Array.from({ length: 12 }, (_, index) => enter(`a${index}`))
  const others = ['b0', 'b1', 'c0'].map(enter)
  await new Promise(setImmediate)
  t.same(outcomes, ['a10 rejected', 'a11 rejected', 'a9 rejected', 'a8 rejected', 'a7 rejected'])
  end()
  await Promise.all([...flood, ...others])
  t.same(outcomes.slice(5, 8), ['a0', 'b0', 'c0'])
  t.equal(outcomes.filter((outcome) => !outcome.endsWith('rejected')).length, 10)
})

t.test('1.13 a wide network takes one turn, and leaves room for others, however many of its narrow networks wait', async (t) => {
  const turns = new OperationQueue(100, { maxWaiting: 10, load: { isBusy: false } })
  const end = await turns.enter(100, at('a'))
  const outcomes: string[] = []
  const enter = async (name: string, address: string) => {
    const end = await turns.enter(100, networksOf(address)).catch(() => undefined)
    outcomes.push(end ? name : `${name} rejected`)
    end?.()
  }
  const flood = Array.from({ length: 10 }, (_, index) => enter(`flood ${index}`, `2001:db8:0:${index}::1`))
  const others = [enter('v6', '2001:db8:1::1'), enter('v4', '192.0.2.1'), enter('neighbour', '192.0.2.2')]
  await new Promise(setImmediate)
  t.same(outcomes, ['flood 0 rejected', 'flood 1 rejected', 'flood 2 rejected'])
  end()
  await Promise.all([...flood, ...others])
  t.same(outcomes.slice(3, 8), ['flood 3', 'v6', 'v4', 'flood 4', 'neighbour'])
})

t.test('1.13 the budget of documents of a wide network is at most half of that of all networks', (t) => {
  const budget = new DocumentBudget({
    documents: { burst: 10, perMinute: 0.01 }, allDocuments: { burst: 160, perMinute: 0.01 },
  } as ConstructorParameters<typeof DocumentBudget>[0])
  const exhaust = (address: string) => {
    for (let count = 0; ; count++) {
      try {
        budget.charge(networksOf(address), { fields: 225, pairs: 0 })
      } catch {
        return count
      }
    }
  }
  t.equal(exhaust('2001:db8::1'), 2, '9.3 ms each')
  const more =
    Array.from({ length: 20 }, (_, index) => exhaust(`2001:db8:0:${(index + 1).toString(16).padStart(2, '0')}00::1`))
  t.same([more.slice(0, 3), more.at(-1)], [[2, 1, 0], 0], 'the /48')
  t.equal(exhaust('192.0.2.1'), 2, 'another network')
  t.end()
})

t.test('1.13 the budget of a network that has long been idle starts again', async (t) => {
  const budget = new DocumentBudget({
    documents: { burst: 1, perMinute: 0.01 }, allDocuments: { burst: 1e6, perMinute: 1 },
  } as ConstructorParameters<typeof DocumentBudget>[0])
  const work = { fields: 100, pairs: 0 }
  budget.charge(networksOf('2001:db8::1'), work)
  t.throws(() => budget.charge(networksOf('2001:db8::2'), work), { code: 'TOO_MANY_DOCUMENTS' }, 'the same network')
  for (let index = 0; index < 10_000; index++) {
    budget.charge(networksOf(`10.${index >> 8}.${index & 255}.1`), { fields: 0, pairs: 0 })
  }
  budget.charge(networksOf('2001:db8::1'), work)
})
