import { lookup } from 'node:dns/promises'
import type { AddressInfo } from 'node:net'
import Fastify, { type FastifyInstance } from 'fastify'
import usher from '../app.ts'
import { readOptions } from '../schema/options/read-options.ts'
import emptyBody from '../plugins/http/raw/empty-body.ts'
import pipelining from '../plugins/http/raw/pipelining.ts'
import { explainConnectionLimit } from './http/connection-limit.ts'
import { explain, openData, type Data } from './data.ts'
import { explainListening } from './preflight.ts'
import type { Shell } from './terminal/shell.ts'
import drain from './http/drain.ts'
import { createFirstAdminNotice } from './terminal/first-admin-notice.ts'
import home from './pages/home.ts'
import { createMissingPage } from './pages/missing.ts'
import httpDefaults from './http/defaults.ts'
import { createListeners, type Listeners } from './http/listeners.ts'
import { serverOptions, trustProxy } from './http/server.ts'
import { localUrl } from './http/local-address.ts'
import { takeServiceManager } from './process/service-manager.ts'
import { createHeaders, type SetHeaders } from './http/security-headers.ts'
import { openMailTemplates } from './mail/templates.ts'
import { openMailer } from './mail/mailer.ts'
import { multiplyNodeDeadlines, STOP_DEADLINES, type NodeDeadlines } from './process/deadlines.ts'
import memory from './process/memory.ts'
import { explainMissingClient } from './metrics/missing-client.ts'
import { stopOnSignals } from './process/stop-on-signals.ts'
import { stopWithParent } from './process/stop-with-parent.ts'
import { waitForDatabase } from './wait-for-database.ts'
import { settlesWithin } from '../schema/runtime/in-time.ts'
import { PROGRAM } from '../schema/runtime/program.ts'
import { listShownSettings } from './settings/listed.ts'
import { printsSecrets } from './settings/printing.ts'
import { nodeOptions, serviceOptions, storageOf } from './settings/service-options.ts'
import type { Settings } from './settings/settings.ts'
import { allWebhooksOf } from './webhooks.ts'
import { addRoutes } from './config/routes.ts'
import { takeHandover, type Handover } from './workers/handover.ts'
import { workersOf } from './workers/count.ts'
import { obeyPrimary } from './workers/worker.ts'

const NO_ADMIN = 'There is no admin, and a password would be printed only to a terminal. ' +
  `Set ADMIN_EMAIL and ADMIN_PASSWORD and start again, or run "${PROGRAM} admin create --email <address>".`

const adminIgnored = (email: string | undefined) =>
  `ADMIN_EMAIL and ADMIN_PASSWORD have no effect, because the database has another admin. To make ${email} one, run ` +
  `"${PROGRAM} admin create --email <address>", or "users promote <address>" if the user exists.`

const EMAILS_SHOWN = 'Anybody can read the addresses of users, also without a login: EMAILS_VISIBLE_TO=owners hides them'
const EMAILS_HIDDEN = 'Addresses of users are visible to themselves and to admins only, because anyone may sign up: ' +
  'EMAILS_VISIBLE_TO says otherwise'

/**
 * Runs the node until a signal stops it, or as one of several workers until the primary stops it. Throws an `Error`
 * with a sentence if the node cannot start.
 */
export async function run (settings: Settings, shell: Shell): Promise<void> {
  const { messages } = shell
  const handover = takeHandover()
  // The reader of the output, such as a terminal or a log shipper, may end before the node. Without a listener, the
  // next line would then end the node, even in the middle of a stop, and leave PostgreSQL running.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => {})
  const setHeaders = createHeaders(settings.CORS_ORIGIN)
  const prettyLog = process.stdout.isTTY
    ? (await import('./terminal/pretty-log.ts')).createPrettyLog(process.stdout)
    : undefined
  const app = Fastify(serverOptions(settings, setHeaders, prettyLog))
  const deadlines = multiplyNodeDeadlines(settings.DEADLINE_FACTOR)
  // Workers have none: the primary tells it.
  const manager = takeServiceManager(app.log, deadlines)
  const stopping = new AbortController()
  const stops = { log: app.log, messages, deadlines }
  const isReplaced = handover ? obeyPrimary({ ...stops, server: app.server, stop }) : () => false
  const opening = handover?.data ? Promise.resolve({ ...handover.data, stop: async () => {} }) : open()
  const serving =
    opening.then((data) => serve(app, settings, data, { shell, setHeaders, handover, deadlines, isReplaced }))
  if (!handover) {
    stopOnSignals(stops, () => {
      stopping.abort()
      return stop()
    })
    stopWithParent()
  }
  try {
    manager.ready(await serving)
  } catch (error) {
    await stop()
    // The signal that has ended the wait for the database ends the process, too.
    if (stopping.signal.aborted) return
    throw new Error(explain(error as Error, settings), { cause: error })
  }

  // A worker is started when the primary has waited for the database.
  async function open (): Promise<Data> {
    if (!handover) await waitForDatabase(settings, messages, stopping.signal)
    return openData(settings, (line) => app.log.info(line))
  }

  // An app can only be closed when it has started. A start that takes long, such as a migration of a large table, ends
  // with the process, and the next start continues it. The database is stopped last, because requests in flight need
  // it.
  async function stop (): Promise<void> {
    manager.stopping()
    const hasEnded = await settlesWithin(serving, STOP_DEADLINES.start, { ref: true })
    if (hasEnded) await app.close()
    await opening.then((data) => data.stop(), () => {})
    await manager.sent()
  }
}

interface Serving {
  shell: Shell
  setHeaders: SetHeaders
  deadlines: NodeDeadlines
  handover: Handover | undefined
  isReplaced: () => boolean
}

// Returns a sentence that says where the node serves.
async function serve (
  app: FastifyInstance, settings: Settings, data: Data, { shell, setHeaders, handover, deadlines, isReplaced }: Serving
): Promise<string> {
  const { messages } = shell
  const { ADMIN_EMAIL: email, ADMIN_PASSWORD: password, CORS_ORIGIN } = settings
  const { METRICS_HOST, METRICS_PORT } = settings
  const announces = handover?.announces ?? true
  if (announces) for (const warning of warningsOf(settings)) app.log.warn(warning)
  if (announces && hidesEmails(settings)) app.log.info(EMAILS_HIDDEN)
  if (announces && showsEmails(settings)) app.log.info(EMAILS_SHOWN)
  const tooMany = await explainConnectionLimit(settings, data.url)
  // Somebody chose that size. Without it, a node has always started, and may never need that many.
  if (tooMany && settings.POOL_SIZE !== undefined) throw new Error(tooMany)
  if (tooMany && announces) app.log.warn(tooMany)
  // The primary listens for its workers.
  const listeners = createListeners(app.server, { shares: handover ? false : undefined })
  await app.register(drain, { listeners, proxied: trustProxy(settings.TRUST_PROXY) !== false, isReplaced })
  await app.register(pipelining)
  await app.register(emptyBody)
  await app.register(memory)
  const options = serviceOptions(settings)
  const shownPages = { pages: readOptions({ databaseUrl: data.url, pages: options.pages }).pages }
  await app.register(httpDefaults, {
    origins: CORS_ORIGIN, setHeaders, renderMissing: await createMissingPage(shownPages),
  })
  // For those who build pages, and for pictures of the components.
  if (settings.NODE_ENV !== 'production') {
    await app.register(import('./pages/design.ts'), { color: settings.PRODUCT_COLOR ?? '#1d4ed8' })
  }
  if (METRICS_PORT !== undefined) {
    const { default: metrics } = await import('./metrics/metrics.ts').catch(explainMissingClient)
    await app.register(metrics, {
      host: METRICS_HOST,
      port: METRICS_PORT,
      deadlines,
      isWorker: handover !== undefined,
      onListen: (url) => messages.print(`Metrics are at ${url}`),
    })
  }
  const notice = createFirstAdminNotice(messages)
  const shown = settings.CONSOLE ? await listShownSettings(shell) : []
  const { mailer, close } = await openMailer(settings, messages)
  // `onClose` hooks run in reverse order. This one is added before Usher is registered, so it runs after Usher has
  // closed.
  app.addHook('onClose', async () => close())
  await app.register(usher, {
    ...options,
    ...nodeOptions(settings),
    databaseUrl: data.url,
    poolSize: settings.POOL_SIZE ?? handover?.poolSize,
    mailer,
    mailTemplates: openMailTemplates(settings),
    webhooks: allWebhooksOf(settings),
    emitter: settings.file?.options.emitter,
    secret: data.secret,
    shownSettings: () => shown,
    ...storageOf(settings),
    admin: email && password ? { email, password } : undefined,
    onAdminIgnored: () => { if (announces) messages.printWarning(adminIgnored(email)) },
    ...printsSecrets(settings)
      ? { onFirstAdmin: notice.keep }
      : { onNoAdmin: () => { if (announces) messages.printWarning(NO_ADMIN) } },
  })
  if (settings.file) await addRoutes(app, settings.file, deadlines)
  // Beside those of the file, which may have a page of its own at /.
  await app.register(home, { ...shownPages, signUp: settings.SIGN_UP === true, console: settings.CONSOLE })
  const url = await listen(app, listeners, settings, deadlines, handover?.port)
  const served = `Usher listens on ${url}`
  if (!announces) return served
  if (!mailer) messages.printWarning('Mails are neither sent nor printed: set SMTP_URL and MAIL_FROM to send them.')
  // Its parent is the primary, which may itself be the child of npm.
  const workers = handover ? [`  workers: ${workersOf(settings)}, replaced by SIGHUP to process ${process.ppid}`] : []
  const pages = { 'log in': 'login', ...settings.CONSOLE && { console: 'console' }, docs: 'docs', GraphiQL: 'graphql' }
  messages.print(
    served, `  data: ${data.location}`,
    `  ${Object.entries(pages).map(([name, path]) => `${name}: ${url}/${path}`).join(', ')}`, ...workers
  )
  notice.show()
  return served
}

// Returns whether sign-up is why only owners see addresses.
const hidesEmails = ({ SIGN_UP, EMAILS_VISIBLE_TO, file, given }: Settings): boolean =>
  SIGN_UP === true && EMAILS_VISIBLE_TO === 'owners' && !given?.includes('EMAILS_VISIBLE_TO') &&
    !file?.options.policy?.['users:read-email']

// Returns whether everybody sees addresses, and nobody has decided so.
const showsEmails = ({ EMAILS_VISIBLE_TO, file, given }: Settings): boolean =>
  EMAILS_VISIBLE_TO === 'anyone' && !given?.includes('EMAILS_VISIBLE_TO') && !file?.options.policy?.['users:read-email']

// Yields warnings about settings with which the node starts but should not run.
function * warningsOf (
  { DATABASE_URL, SECRET, PUBLIC_URL, SMTP_URL, TRUST_PROXY, NODE_ENV, PRINT_SECRETS, file }: Settings
): Generator<string> {
  if (DATABASE_URL && !SECRET) {
    yield 'SECRET is not set: the private signing keys are stored in the database in plain text'
  }
  if (NODE_ENV === 'production' && !SMTP_URL && !PRINT_SECRETS && !file?.options.mailer) {
    yield 'SMTP_URL is not set: no mails are sent, so nobody can reset a password'
  }
  if (SMTP_URL && !PUBLIC_URL) {
    yield 'PUBLIC_URL is not set: links in mails, except for those to set a password, lead to the address at which the node listens'
  }
  if (PUBLIC_URL?.startsWith('https:') && trustProxy(TRUST_PROXY) === false) {
    yield 'PUBLIC_URL is https and TRUST_PROXY is off: every client has the address of the proxy, and all share its limits'
  }
}

async function listen (
  app: FastifyInstance, listeners: Listeners, settings: Settings, { localConnection }: NodeDeadlines,
  port = settings.PORT
): Promise<string> {
  await app.ready()
  try {
    // `localhost` has two addresses. For the second one, Fastify would open a second server, which does not drain.
    const { address } = await lookup(settings.HOST)
    const url = await listeners.listen(app, address, port)
    return await localUrl(url, app.server.address() as AddressInfo, localConnection)
  } catch (error) {
    throw new Error(explainListening(error as NodeJS.ErrnoException, settings), { cause: error })
  }
}
