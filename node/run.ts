import { lookup } from 'node:dns/promises'
import { resolve } from 'node:path'
import Fastify, { type FastifyInstance } from 'fastify'
import usher from '../app.ts'
import { explain, openData, type Data } from './data.ts'
import { readEnvironment } from './environment.ts'
import { print } from './print.ts'
import drain from './drain.ts'
import home from './home.ts'
import httpDefaults from './http-defaults.ts'
import { serverOptions, trustProxy } from './http-server.ts'
import { createHeaders, type SetHeaders } from './security-headers.ts'
import { openMailTemplates } from './mail-templates.ts'
import memory from './memory.ts'
import { stopOnSignals } from './stop-on-signals.ts'
import type { Mailer } from '../schema/options.ts'
import { audiences, type Policy } from '../schema/policy.ts'
import type { Settings } from './settings.ts'
import { webhooksOf } from './webhooks.ts'

const NO_ADMIN = 'There is no admin, and a password would be printed only to a terminal. ' +
  'Set ADMIN_EMAIL and ADMIN_PASSWORD and start again, or run "npx fastify-usher admin create --email <address>".'

/** Runs the node until a signal stops it. Throws an `Error` with a sentence if the node cannot start. */
export async function run (): Promise<void> {
  const settings = readEnvironment()
  // The reader of the output, such as a terminal or a log shipper, may end before the node. Without a listener, the next line
  // would then end the node, even in the middle of a stop, and leave PostgreSQL running.
  for (const output of [process.stdout, process.stderr]) output.on('error', () => {})
  const setHeaders = createHeaders(settings.CORS_ORIGIN)
  const app = Fastify(serverOptions(settings, setHeaders))
  const opening = openData(settings, (line) => app.log.info(line))
  const serving = opening.then((data) => serve(app, settings, data, setHeaders))
  stopOnSignals(app.log, stop)
  try {
    await serving
  } catch (error) {
    await stop()
    throw new Error(explain(error as Error, settings), { cause: error })
  }

  // A start in progress is awaited first. The database is stopped last, because requests in flight need it.
  async function stop (): Promise<void> {
    await serving.catch(() => {})
    await app.close()
    await opening.then((data) => data.stop(), () => {})
  }
}

async function serve (app: FastifyInstance, settings: Settings, data: Data, setHeaders: SetHeaders): Promise<void> {
  const { PUBLIC_URL, DATA_DIR, ADMIN_EMAIL: email, ADMIN_PASSWORD: password, CORS_ORIGIN, UPLOAD_MAX_BYTES, METRICS_HOST, METRICS_PORT } = settings
  for (const warning of warningsOf(settings)) app.log.warn(warning)
  await app.register(drain, { proxied: trustProxy(settings.TRUST_PROXY) !== false })
  await app.register(memory)
  await app.register(httpDefaults, { origins: CORS_ORIGIN, setHeaders })
  await app.register(home)
  if (METRICS_PORT !== undefined) {
    const { default: metrics } = await import('./metrics/metrics.ts')
    await app.register(metrics, { host: METRICS_HOST, port: METRICS_PORT, onListen: (url) => print(`Metrics are at ${url}`) })
  }
  const mailer = await openMailer(app, settings)
  await app.register(usher, {
    databaseUrl: data.url,
    notificationsUrl: settings.NOTIFICATIONS_URL,
    mailer,
    mailTemplates: openMailTemplates(settings),
    webhooks: webhooksOf(settings),
    pages: { productName: settings.PRODUCT_NAME, color: settings.PRODUCT_COLOR },
    secret: data.secret,
    passwordUrl: settings.PASSWORD_URL,
    signUp: settings.SIGN_UP,
    publicUrl: PUBLIC_URL?.replace(/\/+$/, ''),
    origins: CORS_ORIGIN,
    uploadsDir: resolve(DATA_DIR, 'uploads'),
    uploadMaxBytes: UPLOAD_MAX_BYTES,
    policy: policyOf(settings),
    admin: email && password ? { email, password } : undefined,
    ...printsSecrets(settings)
      ? { onFirstAdmin: ({ email, password }) => print(`The first admin is ${email}, password ${password} (not shown again)`) }
      : { onNoAdmin: () => print(NO_ADMIN) },
  })
  const url = await listen(app, settings)
  if (!mailer) print('Mails are neither sent nor printed: set SMTP_URL and MAIL_FROM to send them.')
  print(`Usher listens on ${url}`, `  data: ${data.location}`, `  docs: ${url}/docs, GraphiQL: ${url}/graphql`)
}

// Returns the rules of who may read what (contract 11.1).
function policyOf ({ USERS_VISIBLE_TO, EMAILS_VISIBLE_TO, POSTS_VISIBLE_TO, UPLOADS_VISIBLE_TO }: Settings): Partial<Policy> {
  return {
    'users:list': audiences[USERS_VISIBLE_TO],
    'users:read': audiences[USERS_VISIBLE_TO],
    'users:read-email': audiences[EMAILS_VISIBLE_TO],
    'posts:read': audiences[POSTS_VISIBLE_TO],
    'uploads:read': audiences[UPLOADS_VISIBLE_TO],
  }
}

// Yields warnings about settings with which the node starts but should not run.
function * warningsOf ({ DATABASE_URL, SECRET, PUBLIC_URL, SMTP_URL, TRUST_PROXY }: Settings): Generator<string> {
  if (DATABASE_URL && !SECRET) yield 'SECRET is not set: the private signing keys are stored in the database in plain text'
  if (SMTP_URL && !PUBLIC_URL) {
    yield 'PUBLIC_URL is not set: links in mails, except for those to set a password, lead to the address at which the node listens'
  }
  if (PUBLIC_URL?.startsWith('https:') && trustProxy(TRUST_PROXY) === false) {
    yield 'PUBLIC_URL is https and TRUST_PROXY is off: every client has the address of the proxy, and all share its limits'
  }
}

// Output that does not go to a terminal usually ends up in a log, which is kept and which other people read.
function printsSecrets ({ PRINT_SECRETS = process.stderr.isTTY === true }: Settings): boolean {
  return PRINT_SECRETS
}

// Without a mail server, mails are printed to the terminal. In production they are only printed if PRINT_SECRETS is true.
async function openMailer (app: FastifyInstance, settings: Settings): Promise<Mailer | undefined> {
  const { SMTP_URL, MAIL_FROM, NODE_ENV, PRINT_SECRETS } = settings
  if (SMTP_URL) {
    const { createSmtpMailer } = await import('./smtp.ts')
    const { mailer, close } = createSmtpMailer(SMTP_URL, MAIL_FROM!)
    // `onClose` hooks run in reverse order. This one is added before Usher is registered, so it runs after Usher has closed.
    app.addHook('onClose', async () => close())
    return mailer
  }
  if (PRINT_SECRETS || (NODE_ENV !== 'production' && printsSecrets(settings))) {
    return ({ to, subject, text }) => print(`Mail to ${to}: ${subject}`, '', text)
  }
}

async function listen (app: FastifyInstance, { HOST, PORT }: Settings): Promise<string> {
  await app.ready()
  try {
    // `localhost` has two addresses. For the second one, Fastify would open a second server, which does not drain.
    const { address } = await lookup(HOST)
    return await app.listen({ host: address, port: PORT })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new Error(code === 'EADDRINUSE'
      ? `PORT ${PORT} is in use on ${HOST}: stop the program that uses it, or set another PORT (0 for any free one).`
      : `The node cannot listen on HOST ${HOST} with PORT ${PORT} (${code}): set another HOST or PORT.`, { cause: error })
  }
}
