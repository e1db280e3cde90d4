import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { FACTOR, TEST_TIMEOUT_MS } from './deadlines.ts'
import { parseSettings } from '../../node/settings/settings.ts'

// The characters of the log that an error shows.
const OUTPUT_SHOWN = 5000

const server = fileURLToPath(new URL('../../node/server.ts', import.meta.url))
const coverage = fileURLToPath(new URL('../../.tap/coverage', import.meta.url))
const names = [
  ...Object.keys(parseSettings({})), 'DATABASE_URL', 'NOTIFICATIONS_URL', 'PUBLIC_URL', 'ADMIN_EMAIL', 'ADMIN_PASSWORD',
  'SECRET', 'SMTP_URL', 'MAIL_FROM', 'PASSWORD_URL', 'MAIL_TEMPLATES', 'PRODUCT_COLOR', 'PRODUCT_LOGO',
  'APP_URL', 'TERMS_URL', 'PRIVACY_URL', 'PRINT_SECRETS', 'WEBHOOK_URL',
  'WEBHOOK_SECRET', 'WEBHOOK_EVENTS', 'WEBHOOK_ALLOW_PRIVATE', 'METRICS_PORT', 'SIGNING_ALGORITHM', 'POOL_SIZE',
  'SLOW_STATEMENT_MS', 'CONFIG',
]

/** A node in a separate process. */
export interface TestNode {
  readonly child: ChildProcess
  /** What the node has printed to stdout so far: the log. */
  readonly stdout: string
  /**
   * The messages of what it has printed to stderr so far, one per line. Without a terminal, they are entries like those
   * of the log.
   */
  readonly stderr: string
  /** What it has printed there. */
  readonly rawStderr: string
  /** Resolves with the exit code or the signal when the process has ended and all of its output was read. */
  readonly ended: Promise<number | NodeJS.Signals>
  /** Resolves when `text` has appeared on stderr. Rejects if the node ends first. */
  said (text: string | RegExp): Promise<RegExpMatchArray>
}

export interface Connection {
  readonly socket: Socket
  readonly answer: Promise<string>
}

export interface ServingNode extends TestNode {
  readonly url: string
  fetch (path: string, init?: RequestInit): Promise<Response>
  login (credentials: { email: string, password: string }): Promise<
    { token: string, cookie: string, headers: Record<string, string> }
  >
  /** Opens a raw connection. Its `answer` resolves with everything received when the node has closed it. */
  connect (): Promise<Connection>
  /**
   * Starts a login whose body is incomplete: the node has the head of the request and waits for `rest`, the last bytes
   * of the body.
   */
  beginLogin (credentials: { email: string, password: string }): Promise<Connection & { rest: string }>
}

export interface NodeOptions {
  /** The node's settings. The settings in the environment of this process are not passed on. */
  settings?: Record<string, string>
  /** The working directory. */
  cwd: string
  /** The module that is run, by default the node of this tree. */
  program?: string
  /** The source of a module that runs inside the node, for example to make it fail. */
  inject?: string
  /** Whether the node keeps compiled code where it does for users, instead of where the test suite does. */
  compileCache?: boolean
}

/**
 * Returns the command and the environment that start Node.js in a separate process and include it in the coverage of
 * the tests. By default tap adds a module to every such process, which takes half a second of CPU time.
 * `NODE_V8_COVERAGE` collects the same data without it.
 */
export function nodeCommand (args: readonly string[]): {
  command: [file: string, args: string[]], env: NodeJS.ProcessEnv
} {
  // tap sets NODE_OPTIONS for every process that a test starts, even if the test passes its own environment.
  const command: [string, string[]] = ['env', ['-u', 'NODE_OPTIONS', process.execPath, ...args]]
  const isCovered = process.env['_TAPJS_PROCESSINFO_COVERAGE_'] === '1'
  // V8 only reports coverage for code that the process has compiled itself.
  return {
    command, env: { ...process.env, ...isCovered && { NODE_V8_COVERAGE: coverage, NODE_DISABLE_COMPILE_CACHE: '1' } },
  }
}

/**
 * Returns the environment of a node: settings, without those of this process, and what tests need that others do not.
 */
export function nodeEnvironment (
  settings: Record<string, string>, inherited: NodeJS.ProcessEnv = process.env
): NodeJS.ProcessEnv {
  const env = { ...inherited }
  for (const name of names) delete env[name]
  return { ...env, PORT: '0', POSTS_PER_HOUR: '1000000', DEADLINE_FACTOR: String(FACTOR), ...settings }
}

/** Starts `node node/server.ts`. It is stopped when the test ends. */
export function spawnNode (
  t: Test, { settings = {}, cwd, program = server, inject, compileCache = false }: NodeOptions
): TestNode {
  const { command, env } = nodeCommand(
    inject ? ['--import', `data:text/javascript,${encodeURIComponent(inject)}`, program] : [program]
  )
  if (compileCache) for (const name of ['NODE_DISABLE_COMPILE_CACHE', 'NODE_COMPILE_CACHE']) delete env[name]
  const child = spawn(...command, {
    cwd,
    env: nodeEnvironment(settings, env),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]!.setEncoding('utf8').on('data', (text: string) => { output[name] += text })
  }
  const ended = once(child, 'close').then(([code, signal]) => code ?? signal)
  // The process gets SIGTERM, because a killed process writes no coverage.
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })

  return {
    child,
    ended,
    get stdout () { return output.stdout },
    get stderr () { return messagesIn(output.stderr) },
    get rawStderr () { return output.stderr },

    async said (text) {
      await printed(this, 'stderr', () => this.stderr.match(text))
      return this.stderr.match(text)!
    },
  }
}

/** Returns the messages of a log, one per line. Lines that are no entries of a log remain. */
export function messagesIn (text: string): string {
  return text.split('\n').map((line) => {
    if (!line.startsWith('{"level":')) return line
    // The last line may be incomplete.
    try { return (JSON.parse(line) as { msg: string }).msg } catch { return line }
  }).join('\n')
}

/** Resolves when the condition holds, which is checked at each new line of the log. Rejects if the node ends first. */
export const logged = (node: TestNode, isSo: () => boolean): Promise<void> => printed(node, 'stdout', isSo)

// Rejects with the output, which says what has happened instead. By its own limit, tap would end the test without it.
async function printed (node: TestNode, stream: 'stdout' | 'stderr', isSo: () => unknown): Promise<void> {
  const stop = new AbortController()
  const { signal } = stop
  const over = Promise.race([
    node.ended.then(() => 'the node ended'),
    delay(TEST_TIMEOUT_MS, `not printed within ${TEST_TIMEOUT_MS / 1000} s`, { signal, ref: false }),
  ])
  over.catch(() => {})
  while (!isSo()) {
    const reason = await Promise.race([over, once(node.child[stream]!, 'data', { signal }).then(() => undefined)])
    if (reason !== undefined && !isSo()) {
      throw new Error(`${reason}: ${node.stderr}\n${node.stdout.slice(-OUTPUT_SHOWN)}`)
    }
  }
  stop.abort()
}

/** Starts a node and resolves when it listens. */
export async function startNode (t: Test, options: NodeOptions): Promise<ServingNode> {
  const node = spawnNode(t, options)
  const [, shown = ''] = await node.said(/listens on (\S+)/)
  // Clients of all kinds connect to it, and not all of them try the second address of a name.
  const url = shown.replace('//localhost:', '//127.0.0.1:')
  const request: ServingNode['fetch'] = (path, init) => fetch(`${url}${path}`, init)

  return Object.assign(node, {
    url,
    fetch: request,

    async login (credentials: { email: string, password: string }) {
      const response = await request('/api/auth/login', {
        method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(credentials),
      })
      if (response.status !== 200) throw new Error(`login: ${response.status}`)
      const { token } = await response.json() as { token: string }
      const [cookie = ''] = response.headers.getSetCookie()
      return {
        token,
        cookie: cookie.split(';', 1)[0]!,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      }
    },

    connect: () => open(url),

    async beginLogin (credentials: { email: string, password: string }) {
      const { socket, answer } = await open(url)
      const body = JSON.stringify(credentials)
      const head = [
        'POST /api/auth/login HTTP/1.1', 'host: x', 'content-type: application/json', `content-length: ${body.length}`,
        'expect: 100-continue',
      ]
      socket.write(`${head.join('\r\n')}\r\n\r\n${body.slice(0, 10)}`)
      await once(socket, 'data')
      return { socket, answer, rest: body.slice(10) }
    },
  })
}

async function open (url: string): Promise<Connection> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname).setEncoding('utf8')
  let received = ''
  socket.on('data', (text: string) => { received += text })
  const answer = new Promise<string>((resolve) => socket.on('close', () => resolve(received)).on('error', () => {}))
  await once(socket, 'connect')
  return { socket, answer }
}

/** Stops a node as an orchestrator does and returns its exit code. */
export async function stopNode (
  { child, ended }: TestNode, signal: NodeJS.Signals = 'SIGTERM'
): Promise<number | NodeJS.Signals> {
  child.kill(signal)
  return ended
}
