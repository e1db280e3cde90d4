// Measures what Usher adds to the start of a host: the time until it is ready, and its heap. Hosts with and without
// Usher start in turn, each in a process of its own. Everything needed is started. Usage: `node bench/boot.ts [--times
// 15] [--entry dist/app.js] [--without graphql,pages]`.
import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { startEmbedded } from '../node/embedded/server.ts'

const TARGETS = { ms: 300, cpu: undefined, mib: 10 }

const { values } = parseArgs({
  options: {
    times: { type: 'string', default: '15' },
    entry: { type: 'string', default: 'app.ts' },
    without: { type: 'string', default: '' },
  },
})

/**
 * The milliseconds from the start of the process until the host is ready, those of CPU time, and the heap after a
 * garbage collection.
 */
interface Boot { ms: number, cpu: number, mib: number }

const folder = await mkdtemp(join(tmpdir(), 'usher-boot-'))
const database = await startEmbedded({ dataDir: folder })

try {
  const hosts = { plain: [] as Boot[], usher: [] as Boot[] }
  // The first start creates the tables and the first admin, so it is not measured.
  await boot('usher')
  for (let time = 0; time < Number(values.times); time++) {
    for (const [name, boots] of Object.entries(hosts)) boots.push(await boot(name))
  }
  console.log(
    `${values.entry}, ${cpus().length} cores, Node ${process.version}, ${values.times} starts of each host; medians`
  )
  print('ready after, ms', 'ms')
  // On a busy machine, this says more than the time.
  print('CPU time, ms', 'cpu')
  print('heap, MiB', 'mib')

  function print (what: string, figure: keyof Boot): void {
    const target = TARGETS[figure]
    const [plain, usher] =
      [hosts.plain, hosts.usher].map((boots) => median(boots.map((boot) => boot[figure]))) as [number, number]
    const added = usher - plain
    const verdict = target === undefined ? '' : `  target ${target}: ${added <= target ? 'met' : 'MISSED'}`
    console.log(
      `${what.padEnd(16)} plain ${plain.toFixed(1)}, with Usher ${usher.toFixed(1)}: ${added.toFixed(1)} more${verdict}`
    )
  }
} finally {
  await database.stop()
  await rm(folder, { recursive: true, force: true })
}

async function boot (host: string): Promise<Boot> {
  const options = {
    databaseUrl: database.url,
    uploadsDir: folder,
    admin: { email: 'admin@example.com', password: 'horse battery staple' },
    ...values.without && { without: values.without.split(',') },
  }
  const words = [
    '--expose-gc', join(import.meta.dirname, 'boot-host.ts'), host, resolve(import.meta.dirname, '..', values.entry),
    JSON.stringify(options),
  ]
  const { stdout } = await promisify(execFile)(process.execPath, words, { env: { PATH: process.env['PATH'] } })
  return JSON.parse(stdout)
}

function median (figures: number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)]!
}
