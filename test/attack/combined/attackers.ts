// This process runs the clients of one attack. They attack the port that the phase names.
import { readConfiguration, report } from '../helpers.ts'
import { attacks, persist } from './attacks.ts'
import type { Origin } from './origins.ts'
import type { AttackerConfiguration, Phase } from './phases.ts'

const configuration = await readConfiguration<AttackerConfiguration>()
const attack = attacks[configuration.attack]!
let ending = new AbortController()
let clients: Promise<unknown> = Promise.resolve()

process.on('message', async ({ type, port, origin }: Phase) => {
  ending.abort()
  await clients
  if (type === 'attack') begin(port, origin)
  report({ type: 'ready' })
})
report({ type: 'ready' })

function begin (port: number, origin: Origin | undefined): void {
  ending = new AbortController()
  const { signal } = ending
  clients = Promise.all(Array.from({ length: attack.clients(configuration) }, (_, index) =>
    persist({
      target: { host: '127.0.0.1', port },
      address: `127.0.0.${attack.hosts[index % attack.hosts.length]}`,
      index,
      origin,
      configuration,
      signal,
    }, attack)))
}
