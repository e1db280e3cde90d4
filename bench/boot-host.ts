// A host that starts, measures itself and ends. See boot.ts.
import { setTimeout as delay } from 'node:timers/promises'
import Fastify from 'fastify'

const [, , host, entry = '', options = '{}'] = process.argv
const app = Fastify()
if (host === 'usher') {
  const { default: usher } = await import(entry)
  await app.register(usher, JSON.parse(options))
}
app.get('/', async () => ({ hello: 'world' }))
await app.ready()
const ms = performance.now()
const { user, system } = process.cpuUsage()
// What the start has left behind is collected, as it is in any process that runs for a while.
await delay(200)
globalThis.gc!()
const mib = process.memoryUsage().heapUsed / 2 ** 20
await app.close()
console.log(JSON.stringify({ ms, cpu: (user + system) / 1000, mib }))
