import { lookup } from 'node:dns/promises'
import { resolve } from 'node:path'
import closeWithGrace from 'close-with-grace'
import Fastify, { type FastifyInstance } from 'fastify'
import postgres from 'postgres'
import usher from './app.ts'
import drain from './plugins/drain.ts'
import front, { createHeaders, type SetHeaders } from './plugins/front.ts'
import { serverOptions } from './plugins/http-server.ts'
import memory from './plugins/memory.ts'
import { DatabaseUnavailable } from './schema/errors.ts'
import { readSettings, requireNode, type Settings } from './schema/settings.ts'

const STOP_MS = 10_000
// One Ctrl-C comes twice under npm: from the terminal and from npm.
const SAME_SIGNAL_MS = 500

// The options of the plugin that come from settings: what it says of one is said of the other.
const settingOf = { 'admin.email': 'ADMIN_EMAIL', 'admin.password': 'ADMIN_PASSWORD', publicUrl: 'PUBLIC_URL', uploadsDir: 'DATA_DIR' }

/** The node's database and files. */
interface Data {
  readonly url: string
  readonly place: string
  stop (): Promise<void>
}

/** Runs the node until a signal stops it. What keeps it from starting is said in one sentence, and ends the process. */
export async function start (): Promise<void> {
  await read().then(run).catch((error: Error) => {
    say(error.message)
    process.exit(1)
  })
}

async function read (): Promise<Settings> {
  requireNode(process.versions.node)
  try {
    process.loadEnvFile()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw new Error('.env is there and cannot be read.', { cause: error })
  }
  return readSettings(process.env)
}

async function run (settings: Settings): Promise<void> {
  const setHeaders = await createHeaders(settings.CORS_ORIGIN)
  const app = Fastify(serverOptions(settings, setHeaders))
  const opening = openData(settings, app)
  const serving = opening.then((data) => serve(app, settings, data, setHeaders))
  stopOnSignals(app, stop)
  try {
    await serving
  } catch (error) {
    await stop()
    throw new Error(explain(error as Error, settings), { cause: error })
  }

  // The database last: requests in flight need it. A start that is under way comes to its end before.
  async function stop (): Promise<void> {
    await serving.catch(() => {})
    await app.close()
    await opening.then((data) => data.stop(), () => {})
  }
}

async function openData ({ DATABASE_URL, DATA_DIR }: Settings, { log }: FastifyInstance): Promise<Data> {
  const folder = resolve(DATA_DIR)
  if (DATABASE_URL) return { url: DATABASE_URL, place: `database ${nameOf(DATABASE_URL)}, uploads in ${folder}`, stop: async () => {} }
  const { startEmbedded } = await import('./db/embedded.ts')
  const { url, stop } = await startEmbedded({ dataDir: folder, log: (line) => log.info(line) })
  return { url, place: `${folder} (embedded PostgreSQL)`, stop }
}

async function serve (app: FastifyInstance, settings: Settings, { url: databaseUrl, place }: Data, setHeaders: SetHeaders): Promise<void> {
  const { PUBLIC_URL, DATA_DIR, ADMIN_EMAIL: email, ADMIN_PASSWORD: password, CORS_ORIGIN, UPLOAD_MAX_BYTES } = settings
  await app.register(drain)
  await app.register(memory)
  await app.register(front, { origins: CORS_ORIGIN, setHeaders })
  await app.register(usher, {
    databaseUrl,
    publicUrl: PUBLIC_URL?.replace(/\/+$/, ''),
    origins: CORS_ORIGIN.filter((origin) => origin !== '*'),
    uploadsDir: resolve(DATA_DIR, 'uploads'),
    uploadMaxBytes: UPLOAD_MAX_BYTES,
    admin: email && password ? { email, password } : undefined,
    onFirstAdmin: ({ email, password }) => say(`The first admin is ${email}, password ${password} (not shown again)`),
  })
  const url = await listen(app, settings)
  say(`Usher listens on ${url}`, `  data: ${place}`, `  docs: ${url}/docs, GraphiQL: ${url}/graphql`)
}

async function listen (app: FastifyInstance, { HOST, PORT }: Settings): Promise<string> {
  await app.ready()
  try {
    // `localhost` has two addresses, and Fastify would open a second server that does not drain.
    const { address } = await lookup(HOST)
    return await app.listen({ host: address, port: PORT })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Error(code === 'EADDRINUSE'
      ? `PORT ${PORT} is taken on ${HOST}: stop what listens there, or set another one (0 for any free one).`
      : `HOST ${HOST} with PORT ${PORT} cannot be listened on (${code}).`, { cause: error })
  }
}

function stopOnSignals ({ log }: FastifyInstance, stop: () => Promise<void>): void {
  const { close } = closeWithGrace({
    delay: STOP_MS,
    logger: false,
    // Ours below, and those after which no JavaScript should run.
    skip: ['SIGTERM', 'SIGINT', 'beforeExit', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV'],
    onTimeout: () => say('Usher did not stop within 10 seconds; what was still open is cut off.'),
  }, async ({ err }) => {
    if (err) log.fatal({ err }, 'unexpected, stopping')
    await stop()
  })

  let since: number | undefined
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, onSignal)

  function onSignal (signal: string): void {
    if (since === undefined) {
      since = performance.now()
      say(`Usher stops on ${signal}`)
      close()
    } else if (performance.now() - since > SAME_SIGNAL_MS) {
      say(`Usher ends at once on a second ${signal}`)
      process.exit(1)
    }
  }
}

/** One sentence on why the node cannot start. */
function explain (error: Error, { DATABASE_URL }: Settings): string {
  if (DATABASE_URL && error instanceof DatabaseUnavailable) {
    return `DATABASE_URL: ${nameOf(DATABASE_URL)} cannot be reached (${(error.cause as NodeJS.ErrnoException).code}).`
  }
  if (DATABASE_URL && error instanceof postgres.PostgresError) return `DATABASE_URL: ${nameOf(DATABASE_URL)} refuses: ${error.message}.`
  return Object.entries(settingOf).reduce((message, [option, setting]) => message.replace(`usher: ${option} `, `${setting} `), error.message)
}

// Without the user and the password.
function nameOf (databaseUrl: string): string {
  const { database, host, port } = postgres(databaseUrl).options
  return `"${database}" on ${host.map((name, index) => `${name}:${port[index]}`).join(', ')}`
}

function say (...lines: string[]): void {
  // Standard output is the log's, which is for programs.
  process.stderr.write(`${lines.join('\n')}\n`)
}
