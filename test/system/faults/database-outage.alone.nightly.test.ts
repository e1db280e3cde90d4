import { setTimeout as delay } from 'node:timers/promises'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { createUsher } from '../../helpers/app.ts'
import { startDatabase, testDatabaseUrl } from '../../helpers/database.ts'
import { createLoad, type Load } from '../../helpers/load.ts'
import { createProxy, type Proxy } from '../../helpers/proxy.ts'

// This is much longer than the second that the slowest request takes on an idle machine, and shorter than any timeout
// of a client.
const HANG_MS = 8_000

const failures: [name: string, fail: (proxy: Proxy) => unknown, restore: (proxy: Proxy) => unknown][] = [
  ['refuses connections', (proxy) => proxy.refuse(), (proxy) => proxy.listen()],
  ['freezes, and thaws', (proxy) => proxy.freeze(), (proxy) => proxy.thaw()],
  ['freezes, and only new connections work', (proxy) => proxy.freeze(), (proxy) => { proxy.abandon() }],
  ['hangs up on whoever connects', (proxy) => proxy.hangUp(), (proxy) => proxy.listen()],
]

for (const [name, fail, restore] of failures) {
  t.test(`1.10 the database ${name} under load: 503 within a second, then normal service`, async (t) => {
    const proxy = await createProxy(t, await testDatabaseUrl())
    const usher = await createUsher(t, { databaseUrl: proxy.url, deadlines: {} })
    const load = await createLoad(usher)
    await outage(t, load, () => fail(proxy), () => restore(proxy))
    t.comment(`dialed while away: ${proxy.dialed}`)
  })
}

async function outage (t: Test, load: Load, fail: () => unknown, restore: () => unknown, rounds = 2): Promise<void> {
  await load.next(201)
  for (let round = 0; round < rounds; round++) {
    const failed = performance.now()
    const refused = load.next(503)
    await fail()
    const first = await refused
    t.comment(`first 503 after ${Math.round(first.sent + first.took - failed)} ms`)
    await delay(700)
    const restored = performance.now()
    const served = Promise.all([load.next(200), load.next(201)])
    await restore()
    const again = await served
    t.comment(`served again after ${again.map(({ sent, took }) => Math.round(sent + took - restored))} ms`)
    t.strictSame(again.map(({ status }) => status), [200, 201], 'serves again by itself')
    await delay(300)
  }
  await load.stop()
  judge(t, load)
}

function judge (t: Test, { answers, lag }: Load): void {
  const byStatus = Object.groupBy(answers, ({ status }) => status)
  const took = answers.map(({ took }) => took).sort((a, b) => a - b)
  t.comment(
    Object.entries(byStatus).map(([status, some]) => `${status}: ${some!.length}`).join(', '),
    `slowest ${Math.round(took.at(-1)!)} ms`,
    `lag ${Math.round(lag)} ms`
  )
  t.strictSame(answers.filter(({ status }) => ![200, 201, 503].includes(status)).slice(0, 3), [], 'no other answer')
  t.strictSame(
    answers.filter(({ status, retryAfter }) => status === 503 && retryAfter !== '1').slice(0, 3),
    [],
    'says when to come back'
  )
  // On an idle machine the limit is a second. A busy machine takes longer for everything.
  t.strictSame(answers.filter(({ took }) => took > HANG_MS).slice(0, 3), [], 'none hangs')
}

t.test('1.10 PostgreSQL itself fails under load', async (t) => {
  const { postmaster, ...server } = await startDatabase(t)

  await t.test('1.10 it is paused and continues', async (t) => {
    const load = await createLoad(await createUsher(t, { databaseUrl: server.url, deadlines: {} }))
    const direct = postgres(server.url, { max: 1 })
    t.teardown(() => direct.end({ timeout: 0 }))
    await direct`select 1`
    const main = await postmaster()
    let backends: number[] = []

    async function stop (): Promise<void> {
      // First stops the process that would start new backends, and last the backend that lists the others.
      process.kill(main, 'SIGSTOP')
      backends =
        (await direct`select pid from pg_stat_activity order by pid <> pg_backend_pid() desc`).map(({ pid }) => pid)
      for (const pid of backends) process.kill(pid, 'SIGSTOP')
    }

    function resume (): void {
      for (const pid of [...backends.splice(0), main]) process.kill(pid, 'SIGCONT')
    }

    t.teardown(resume)
    await outage(t, load, stop, resume, 1)
  })

  await t.test('1.10 it is killed and restarted', async (t) => {
    const load = await createLoad(await createUsher(t, { databaseUrl: server.url, deadlines: {} }))
    await load.next(201)
    const refused = load.next(503)
    process.kill(await postmaster(), 'SIGKILL')
    await refused
    // The node restarts it on the same port.
    await load.next(201)
    await load.stop()
    judge(t, load)
  })
})
