// npm run bench [-- --rounds 3 --seconds 5 --works user,list --json results.json]
// Everything it needs it starts itself. What the figures mean: bench/README.md.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startEmbedded } from '../db/embedded.ts'
import { load } from './data.ts'
import { findGenerator, shoot, works, type Sample, type Work } from './load.ts'
import { print, summarize } from './report.ts'
import { login, startServer, type Server } from './servers.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '5' },
    connections: { type: 'string', default: '64' },
    users: { type: 'string', default: '100000' },
    posts: { type: 'string', default: '500000' },
    works: { type: 'string', default: works.join(',') },
    json: { type: 'string' },
  },
})

const folder = await mkdtemp(join(tmpdir(), 'usher-bench-'))
const database = await startEmbedded({ dataDir: folder })
const servers: Server[] = []

try {
  const env = { DATABASE_URL: database.url, UPLOADS_DIR: join(folder, 'uploads'), NODE_ENV: 'production' }
  // Usher first: it makes the tables that the baseline works on too.
  const usher = await startServer('usher', env)
  servers.push(usher)
  const idsFile = join(folder, 'ids')
  await writeFile(idsFile, (await load(database.url, { users: Number(values.users), posts: Number(values.posts) })).join('\n'))
  servers.unshift(await startServer('ceiling', env), await startServer('baseline', env))

  const generator = await findGenerator()
  const token = await login(usher.url)
  const samples = new Map<Work, Map<string, Sample[]>>()
  for (const work of values.works.split(',') as Work[]) {
    const ofWork = new Map(servers.map(({ name }) => [name, [] as Sample[]]))
    samples.set(work, ofWork)
    for (const { url } of servers) await shoot(generator, { url, work, idsFile, token, seconds: 2, connections: Number(values.connections) })
    for (let round = 0; round < Number(values.rounds); round++) {
      for (const { name, url } of servers) {
        ofWork.get(name)!.push(await shoot(generator, { url, work, idsFile, token, seconds: Number(values.seconds), connections: Number(values.connections) }))
      }
    }
  }
  const summary = summarize(samples)
  print(summary, `${generator}, ${values.connections} connections, ${values.rounds} rounds of ${values.seconds} s, ${cpus().length} cores, Node ${process.version}`)
  if (values.json) await writeFile(values.json, JSON.stringify(summary, null, 2))
} finally {
  for (const server of servers) await server.stop()
  await database.stop()
  await rm(folder, { recursive: true, force: true })
}
