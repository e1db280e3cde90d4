import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { startEmbedded } from '../node/embedded/server.ts'
import { load, type Amounts } from './data.ts'
import { findGenerator, shoot, type Generator, type Load, type Sample } from './load.ts'
import type { Options } from './options.ts'
import { startServer, type Server } from './servers.ts'

/** The environment of every part of the benchmark: a database, servers and a load generator. */
export interface Stage {
  readonly options: Options
  readonly generator: Generator
  /** The folder of the data of PostgreSQL. */
  readonly dataFolder: string
  /** By a Unix socket, except where there are none. */
  readonly databaseUrl: string
  /** The same database by TCP. */
  readonly tcpDatabaseUrl: string
  /** Starts a server of this folder. It uses the given PostgreSQL schema, or the one that `users` fills. */
  start (
    name: 'ceiling' | 'baseline' | 'floor-server' | 'files-ceiling' | 'files-baseline' | 'postgraphile-server' | 'usher',
    given?: { schema?: string, nodeOptions?: string[], env?: Record<string, string> }
  ): Promise<Server>
  /** Makes Usher create its tables in a schema and fills them. Returns the path of a file with ids of users. */
  fill (schema: string, amounts: Amounts): Promise<string>
  /** Fills the schema that most parts share, at the first call. Returns the path of the file with ids of its users. */
  users (): Promise<string>
  /** Writes a file of keys for the generator and returns its path. */
  write (name: string, keys: string[]): Promise<string>
  shoot (load: Load): Promise<Sample>
  close (): Promise<void>
}

const SCHEMA = 'usher'

export async function openStage (options: Options): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), 'usher-bench-'))
  const database = await startEmbedded({ dataDir: folder, tcp: true })
  const generator = await findGenerator()
  const env = { DATABASE_URL: database.url, UPLOADS_DIR: join(folder, 'uploads'), NODE_ENV: 'production' }
  const profiling = options.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${resolve(options.profile)}`]
  let users: Promise<string> | undefined

  const stage: Stage = {
    options,
    generator,
    dataFolder: join(folder, 'postgres', 'data'),
    databaseUrl: database.url,
    tcpDatabaseUrl: database.tcpUrl!,

    start: (name, { schema = SCHEMA, nodeOptions = [], env: more = {} } = {}) =>
      startServer(name, { ...env, ...more, SCHEMA: schema }, [...profiling, ...nodeOptions]),

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
