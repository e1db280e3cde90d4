// Measures whether the response time of a sign-up reveals who has an account. Usage: `node bench/sign-up-timing.ts
// [rounds]`. Free and taken addresses take turns, in a random order for each pair, on one connection to a node in this
// process.
import { randomInt, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Fastify from 'fastify'
import usher from '../app.ts'
import { startEmbedded } from '../node/embedded/server.ts'

const rounds = Number(process.argv[2] ?? 1000)
const WARM_UP = 30
const generous = { burst: 1_000_000, perMinute: 1_000_000 }
// All addresses have the same length.
const newEmail = () => `${randomUUID()}@example.com`
const admin = { email: newEmail(), password: 'horse battery staple' }

const folder = await mkdtemp(join(tmpdir(), 'usher-timing-'))
const database = await startEmbedded({ dataDir: folder })
const app = Fastify()
await app.register(usher, {
  databaseUrl: database.url,
  uploadsDir: join(folder, 'uploads'),
  admin,
  mailer: async () => {},
  signUp: true,
  throttle: { signUp: generous },
})
const url = await app.listen({ host: '127.0.0.1', port: 0 })
const times: Record<'free' | 'taken', number[]> = { free: [], taken: [] }
try {
  for (let round = 0; round < WARM_UP + rounds; round++) {
    for (const name of randomInt(2) ? ['free', 'taken'] as const : ['taken', 'free'] as const) {
      const body = JSON.stringify({
        name: 'Somebody', email: name === 'free' ? newEmail() : admin.email, password: 'a password of nobody',
      })
      const started = performance.now()
      const response = await fetch(
        `${url}/api/auth/sign-up`, { method: 'POST', headers: { 'content-type': 'application/json' }, body }
      )
      await response.arrayBuffer()
      if (response.status !== 202) throw new Error(`${response.status}`)
      if (round >= WARM_UP) times[name].push(performance.now() - started)
    }
  }
} finally {
  await app.close()
  await database.stop()
  await rm(folder, { recursive: true })
}

// The two requests of a pair follow each other, so that other load affects both. Around half of the differences should
// be positive.
const differences = Float64Array.from(times.free, (time, index) => times.taken[index]! - time).sort()
const [free, taken] =
  [times.free, times.taken].map((values) => Float64Array.from(values).sort()) as [Float64Array, Float64Array]
for (const [name, sorted] of [['free', free], ['taken', taken]] as const) {
  console.log(
    `${name}, ${rounds}: p50 ${percentile(sorted, 0.5)} ms, p10 ${percentile(sorted, 0.1)} ms, p90 ${percentile(sorted, 0.9)} ms`
  )
}

console.log(
  `taken minus free, of each pair: p50 ${percentile(differences, 0.5)} ms, positive in ${differences.filter((value) => value > 0).length} of ${rounds}`
)

function percentile (sorted: Float64Array, share: number): string {
  return sorted[Math.floor((sorted.length - 1) * share)]!.toFixed(3)
}
