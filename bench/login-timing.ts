// Measures whether response times reveal who has an account. Usage: `node bench/login-timing.ts [rounds]`. Known and
// unknown addresses take turns, in a random order for each pair, on one connection to a node in this process.
import { randomInt } from 'node:crypto'
import Fastify from 'fastify'
import usher from '../app.ts'
import { startEmbedded } from '../node/embedded/server.ts'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const rounds = Number(process.argv[2] ?? 400)
const WARM_UP = 30
const admin = { email: 'known@example.com', password: 'horse battery staple' }
const generous = { burst: 1_000_000, perMinute: 1_000_000 }

const folder = await mkdtemp(join(tmpdir(), 'usher-timing-'))
const database = await startEmbedded({ dataDir: folder })
const app = Fastify()
await app.register(usher, {
  databaseUrl: database.url,
  uploadsDir: join(folder, 'uploads'),
  admin,
  mailer: async () => {},
  throttle: { account: generous, address: generous, refresh: generous, reset: generous },
})
const url = await app.listen({ host: '127.0.0.1', port: 0 })
try {
  const { token } = await (await post('/api/auth/login', admin)).json() as { token: string }
  await post('/api/users', { name: 'No password', email: 'first@example.com' }, { authorization: `Bearer ${token}` })
  const wrong = { password: 'a wrong password' }
  await compare(
    'login: a wrong password, and an unknown address', '/api/auth/login', { email: admin.email, ...wrong },
    { email: 'nobody@example.com', ...wrong }
  )
  await compare(
    'login: a user without a password, and an unknown address', '/api/auth/login',
    { email: 'first@example.com', ...wrong }, { email: 'nobody@example.com', ...wrong }
  )
  await compare(
    'reset: a known address, and an unknown one', '/api/auth/password-reset', { email: admin.email },
    { email: 'nobody@example.com' }
  )
} finally {
  await app.close()
  await database.stop()
  await rm(folder, { recursive: true })
}

function post (path: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${url}${path}`, {
    method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body),
  })
}

async function compare (what: string, path: string, known: object, unknown: object): Promise<void> {
  const times: Record<'known' | 'unknown', number[]> = { known: [], unknown: [] }
  for (let round = 0; round < WARM_UP + rounds; round++) {
    const pair = [['known', known], ['unknown', unknown]] as const
    for (const [name, body] of randomInt(2) ? pair : [pair[1], pair[0]]) {
      const started = performance.now()
      await (await post(path, body)).arrayBuffer()
      if (round >= WARM_UP) times[name].push(performance.now() - started)
    }
  }
  const [low, high] = interval(times.known, times.unknown)
  console.log(`${what}, ${rounds} each
  medians: ${median(times.known).toFixed(3)} ms and ${median(times.unknown).toFixed(3)} ms
  difference of the medians: ${(median(times.known) - median(times.unknown)).toFixed(3)} ms (95 %: ${low.toFixed(3)} to ${high.toFixed(3)})
  Mann-Whitney: p = ${mannWhitney(times.known, times.unknown).toFixed(3)}`)
}

function median (values: readonly number[]): number {
  const sorted = Float64Array.from(values).sort()
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2
}

// Returns the percentiles of a bootstrap.
function interval (one: readonly number[], other: readonly number[]): [low: number, high: number] {
  const draw = (values: readonly number[]) => values.map(() => values[randomInt(values.length)]!)
  const differences = Float64Array.from({ length: 2000 }, () => median(draw(one)) - median(draw(other))).sort()
  return [differences[50]!, differences[1949]!]
}

// Two-sided test with the normal approximation. The clock is so precise that ties are rare.
function mannWhitney (one: readonly number[], other: readonly number[]): number {
  const all = [...one.map((time) => ({ time, mine: true })), ...other.map((time) => ({ time, mine: false }))]
    .sort((a, b) => a.time - b.time)
  const ranks = all.reduce((sum, { mine }, index) => mine ? sum + index + 1 : sum, 0)
  const [n, m] = [one.length, other.length]
  const z = Math.abs(ranks - n * (n + 1) / 2 - n * m / 2) / Math.sqrt(n * m * (n + m + 1) / 12)
  return 2 * (1 - normal(z))
}

// The distribution function of the normal distribution (Abramowitz and Stegun 26.2.17).
function normal (z: number): number {
  const k = 1 / (1 + 0.2316419 * z)
  const tail = k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
  return 1 - Math.exp(-z * z / 2) / Math.sqrt(2 * Math.PI) * tail
}
