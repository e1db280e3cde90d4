import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { startEmbedded } from '../node/embedded/server.ts'
import { load, type Amounts } from './data.ts'
import { findGenerator, shoot, type Generator, type Load, type Sample } from './load.ts'
import type { Options } from './options.ts'
import { startServer, type Server } from './servers.ts'

/** What every part of the benchmark stands on: a database, servers on it, a generator of load. */
export interface Stage {
  readonly options: Options
  readonly generator: Generator
  readonly databaseUrl: string
  /** Starts a server of this folder; Usher in a Postgres schema of its own, or in that of `users`. */
  start (name: 'ceiling' | 'baseline' | 'usher', given?: { schema?: string, nodeOptions?: string[] }): Promise<Server>
  /** Has Usher make its tables in a schema, and fills them: a file of ids of its users. */
  fill (schema: string, amounts: Amounts): Promise<string>
  /** The file of ids of the schema that most parts share; filled at the first call. */
  users (): Promise<string>
  /** A file of keys for the generator. */
  write (name: string, keys: string[]): Promise<string>
  shoot (load: Load): Promise<Sample>
  close (): Promise<void>
}

const SCHEMA = 'usher'

export async function openStage (options: Options): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), 'usher-bench-'))
  const database = await startEmbedded({ dataDir: folder })
  const generator = await findGenerator()
  const env = { DATABASE_URL: database.url, UPLOADS_DIR: join(folder, 'uploads'), NODE_ENV: 'production' }
  const profiling = options.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(options.profile)}`]
  let users: Promise<string> | undefined

  const stage: Stage = {
    options,
    generator,
    databaseUrl: database.url,

    start: (name, { schema = SCHEMA, nodeOptions = [] } = {}) => startServer(name, { ...env, SCHEMA: schema }, [...profiling, ...nodeOptions]),

    async fill (schema, amounts) {
      const usher = await stage.start('usher', { schema })
      try {
        return await stage.write(schema, await load(database.url, schema, amounts))
      } finally {
        await usher.stop()
      }
    },

    users: () => (users ??= stage.fill(SCHEMA, options)),

    async write (name, keys) {
      const file = join(folder, `${name}.keys`)
      await writeFile(file, keys.join('\n'))
      return file
    },

    shoot: (load) => shoot(generator, load),

    async close () {
      await database.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
  return stage
}
