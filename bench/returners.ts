// The client of comeback.ts, in its own process. It opens all sockets at once and resumes from an old cursor.
import { once } from 'node:events'
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { Comeback, Returned } from './comeback.ts'
import { median } from './report.ts'
import { createWriter, given, subscribe, tell } from './sockets.ts'

const QUERY = 'subscription ($after: String) { postCreated(after: $after) { id title cursor author { id } } }'
const WARM_UP_SOCKETS = 50
const TIMEOUT_MS = 20_000
// The title of a post is its number among the missed posts.
const DIGITS = 8
const TITLE = Buffer.from('"title":"')

const { url, token, sockets, missed, rounds } = given<Comeback>()
const create = createWriter(url, token)
const after = await create('the last one seen')
for (let number = 0; number < missed; number++) await create(String(number).padStart(DIGITS, '0'))

await comeBack(WARM_UP_SOCKETS)
const returned: Returned[] = []
while (returned.length < rounds) returned.push(await comeBack(sockets))
tell(returned)
process.disconnect()

async function comeBack (count: number): Promise<Returned> {
  const next = new Uint32Array(count)
  const times: number[] = []
  const caughtUp = Promise.withResolvers<void>()
  const tally = { doubled: 0, disordered: 0, messages: 0 }

  function hear (index: number, data: Buffer): void {
    const at = data.indexOf(TITLE) + TITLE.length
    const number = Number(data.toString('latin1', at, at + DIGITS))
    tally.messages++
    if (number < next[index]!) tally.doubled++
    else if (number > next[index]!) tally.disordered++
    next[index] = number + 1
    if (number + 1 === missed) times.push(performance.now() - start)
    if (times.length === count) caughtUp.resolve()
  }

  const start = performance.now()
  const open = await Promise.all(Array.from({ length: count }, (_, index) =>
    subscribe(url, { query: QUERY, variables: { after } }, (data) => hear(index, data))))
  const connected = performance.now() - start
  await Promise.race([caughtUp.promise, delay(TIMEOUT_MS, undefined, { ref: false })])
  const lost = next.reduce((sum, number) => sum + missed - number, 0)
  for (const socket of open) socket.terminate()
  await Promise.all(open.map((socket) => once(socket, 'close')))
  return { connected, p50: median(times), all: lost > 0 ? Infinity : times.at(-1)!, lost, ...tally }
}
