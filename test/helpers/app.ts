import { randomUUID } from 'node:crypto'
import type { ServerOptions } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import Fastify, {
  type FastifyInstance, type FastifyServerOptions, type InjectOptions, type LightMyRequestResponse,
} from 'fastify'
import root, { type Test } from 'tap'
import usher, { type UsherOptions } from '../../app.ts'
import { slow } from './deadlines.ts'
import { testSocketUrl, uniqueSchema } from './database.ts'
import { isChecked, openDocument, type Check } from './openapi.ts'
import { takeSchema } from './schemas.ts'
import { temporaryFolder } from './temporary-folder.ts'

// These limits are higher than any test needs. test/throttle/throttle.alone.test.ts, mail-limits.test.ts and
// posts-quota.test.ts test the real ones.
const generous = { burst: 10_000, perMinute: 10_000 }
const ADMIN = { email: 'admin@example.com', password: 'horse battery staple' }

/** A user who has logged in. */
export interface LoggedIn {
  id: string
  email: string
  password: string
  token: string
  /** The session cookie, in the form of a `Cookie` header. */
  cookie: string
  /** `{ authorization: 'Bearer …' }` */
  headers: { authorization: string }
}

export interface TestUsher {
  app: FastifyInstance
  options: UsherOptions
  prefix: string
  inject (method: InjectOptions['method'], path: string, rest?: Omit<InjectOptions, 'method' | 'url'>): Promise<
    LightMyRequestResponse
  >
  login (credentials: { email: string, password: string }): Promise<LoggedIn>
  /** Creates a user with a password and logs in as that user. */
  createUser (user?: { name?: string, email?: string, role?: string }): Promise<LoggedIn>
  admin: LoggedIn
}

/**
 * Mounts Usher in a bare Fastify instance, to which `server` is passed. It uses the shared test database and a
 * PostgreSQL schema of its own, unless `options` names one that several apps share. The app is closed when the test
 * ends. The schema is dropped after the test run.
 */
export async function createUsher (
  t: Test, options: UsherOptions = {}, server: FastifyServerOptions & { http?: ServerOptions } = {}
): Promise<TestUsher> {
  const given: UsherOptions = {
    databaseUrl: await testSocketUrl(),
    // The spare schemas are in the shared database only.
    schema: options.schema ?? (options.databaseUrl === undefined ? await takeSchema(t) : uniqueSchema(t.name)),
    uploadsDir: options.uploadsDir ?? temporaryFolder(),
    poolSize: 4,
    admin: ADMIN,
    postsPerHour: 1_000_000,
    deadlines: slow,
    // Time limits of clients and hosts are ten times as long, too.
    pingSeconds: 250,
    bodySeconds: 300,
    hookSeconds: 60,
    uploadIdleSeconds: 300,
    // test/sign-in/passwords/hashing.test.ts tests the real ones.
    passwordHash: { memoryKiB: 8, passes: 1 },
    throttle: {
      account: generous,
      address: generous,
      refresh: generous,
      reset: generous,
      signUp: generous,
      secondFactor: generous,
      loginMail: generous,
      invitation: generous,
      mail: generous,
      verifiedMail: generous,
    },
    graphql: { documents: generous, allDocuments: generous },
    ...options,
  }
  // A start takes seconds on a busy machine.
  const app = Fastify({ forceCloseConnections: true, pluginTimeout: 0, ...server })
  const responses = checkResponses(app, given.prefix ?? '')
  t.teardown(async () => {
    await app.close()
    responses.settle()
  })
  await app.register(usher, given)
  await app.ready()
  await responses.start()
  return createHelpers(app, given, (response) => {
    responses.settle()
    return response
  })
}

// A token is valid for 15 minutes, and the tests of a folder may take longer on a busy machine.
const RENEW_MS = 300_000
const shared = new Map<string, { app: Promise<TestUsher>, renewedAt: number }>()
const functions: unknown[] = []

/**
 * Returns an app that the tests of a process share if they need the same options, because opening one takes more time
 * than most tests. A test creates users of its own, and asserts nothing about those of others. It changes neither the
 * admin nor anything else that the app has only once; a test that does, or that closes the app, uses `createUsher`.
 * Functions are the same only if they are one object, so those that apps share belong to a module.
 */
export async function sharedUsher (options: UsherOptions = {}): Promise<TestUsher> {
  const key = JSON.stringify(options, (_, value: unknown) => {
    // An option that is undefined replaces one of `createUsher`.
    if (value === undefined) return 'undefined'
    if (typeof value !== 'function') return value
    if (!functions.includes(value)) functions.push(value)
    return `function ${functions.indexOf(value)}`
  })
  const now = performance.now()
  const found = shared.get(key) ?? { app: createUsher(root, options), renewedAt: now }
  shared.set(key, found)
  const usher = await found.app
  if (now - found.renewedAt > RENEW_MS) {
    found.renewedAt = now
    // Tests may have kept the object with the headers.
    const { headers, ...rest } = await usher.login(usher.options.admin!)
    Object.assign(usher.admin.headers, headers)
    Object.assign(usher.admin, rest)
  }
  return usher
}

const UNCHECKED = 'x-unchecked'
/** Headers of a request whose response the OpenAPI document does not describe, because an earlier release sent it. */
export const unchecked = { [UNCHECKED]: 'true' }

/**
 * Checks every response of an app by the OpenAPI document (in the tests that `isChecked` names), also those to requests
 * over sockets. `settle` throws an error if one was wrong since it was called last.
 */
function checkResponses (app: FastifyInstance, prefix: string) {
  const problems: string[] = []
  let check: Check | undefined
  app.addHook('onSend', (request, reply, payload, done) => {
    const { method, url } = request
    const body = typeof payload === 'string' || Buffer.isBuffer(payload) ? payload : undefined
    const problem = url.startsWith(prefix) && !(UNCHECKED in request.headers)
      ? check?.({ method, url: url.slice(prefix.length), status: reply.statusCode, headers: reply.getHeaders(), body })
      : undefined
    if (problem !== undefined) problems.push(problem)
    done()
  })
  return {
    async start () {
      if (isChecked) check = await openDocument(app, prefix)
    },
    settle () {
      const [problem] = problems.splice(0)
      if (problem !== undefined) throw new Error(`Not as the OpenAPI document says: ${problem}`)
    },
  }
}

// If the machine is very busy, PostgreSQL responds so late that a node answers 503 with Retry-After. The helpers then
// try again, as any client should.
async function repeat (send: () => Promise<LightMyRequestResponse>): Promise<LightMyRequestResponse> {
  for (let tries = 0; tries < 10; tries++) {
    const response = await send()
    if (response.statusCode !== 503) return response
    await delay(1000)
  }
  return send()
}

/**
 * Returns the same helpers for an app that has mounted Usher itself. They check the responses to their own requests,
 * apart from the headers that only the host sends.
 */
export async function withUsers (app: FastifyInstance, options: UsherOptions): Promise<TestUsher> {
  const check = isChecked ? await openDocument(app, options.prefix ?? '', { hasHost: true }) : undefined
  return createHelpers(app, options, (response, method, url) => {
    const { statusCode: status, headers, rawPayload: body } = response
    const problem = check?.({ method: `${method}`, url, status, headers, body })
    if (problem !== undefined) throw new Error(`Not as the OpenAPI document says: ${problem}`)
    return response
  })
}

type Checked =
  (response: LightMyRequestResponse, method: InjectOptions['method'], path: string) => LightMyRequestResponse

async function createHelpers (app: FastifyInstance, options: UsherOptions, checked: Checked): Promise<TestUsher> {
  const prefix = options.prefix ?? ''
  const inject: TestUsher['inject'] = async (method, path, rest) =>
    checked(await app.inject({ method: method!, url: `${prefix}${path}`, ...rest }), method, path)

  async function login ({ email, password }: { email: string, password: string }): Promise<LoggedIn> {
    const response = await repeat(() => inject('POST', '/api/auth/login', { payload: { email, password } }))
    if (response.statusCode !== 200) throw new Error(`login: ${response.statusCode} ${response.body}`)
    const { token, user } = response.json()
    const [{ name, value }] = response.cookies as [{ name: string, value: string }]
    return {
      id: user.id, email, password, token, cookie: `${name}=${value}`, headers: { authorization: `Bearer ${token}` },
    }
  }

  const admin = await login(options.admin!)

  return {
    app,
    options,
    prefix,
    inject,
    login,
    admin,

    async createUser (user = {}) {
      const payload = {
        name: 'Somebody', email: `${randomUUID()}@example.com`, password: `pass ${randomUUID()}`, ...user,
      }
      const response = await inject('POST', '/api/users', { headers: admin.headers, payload })
      if (response.statusCode !== 201) throw new Error(`create: ${response.statusCode} ${response.body}`)
      return login(payload)
    },
  }
}
