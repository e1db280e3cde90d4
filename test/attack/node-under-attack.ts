import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { messagesIn } from '../helpers/node.ts'
import type { Target } from './http-connection.ts'

const SERVER = fileURLToPath(new URL('../../node/server.ts', import.meta.url))
const REPORT_HEAP = new URL('report-heap.ts', import.meta.url).href
const WARN = 40
// The number of the last lines of standard error in the report of a crash.
const LINES_KEPT = 40
const CRASHES = 20
// The unit of times in /proc on Linux: USER_HZ is 100 on all common architectures.
const TICKS_PER_SECOND = 100

export const ADMIN = { email: 'admin@example.com', password: 'horse battery staple' }

export interface NodeOptions {
  readonly databaseUrl: string
  readonly folder: string
  /** The maximum heap size in MiB. It keeps an attack from exhausting the memory of the machine. */
  readonly heap: number
  /** Further settings of the node. */
  readonly settings?: Readonly<Record<string, string>>
}

/** The attacked node, in a separate process. After a crash it is restarted on the same port. */
export class NodeUnderAttack {
  readonly target: Target = { host: '127.0.0.1', port: 0 }
  /** The last output of each process that ended without being stopped, one entry per crash. */
  readonly crashes: string[] = []
  /** Log lines at level warn and above, by level and message. */
  readonly logged = new Map<string, { count: number, example: string }>()
  /** Warnings that Node prints to standard error. */
  readonly warnings: string[] = []
  /** MiB in use after the latest full garbage collection. Only a leak makes this value grow. */
  memoryInUse: number | undefined
  readonly #options: NodeOptions
  #child!: ChildProcess
  #stopping = false
  #lastLines: string[] = []

  constructor (options: NodeOptions) {
    this.#options = options
  }

  get pid (): number {
    return this.#child.pid!
  }

  get url (): string {
    return `http://${this.target.host}:${this.target.port}`
  }

  /** Starts the node and waits until it listens. Throws if it ends before. */
  async start (): Promise<void> {
    const { databaseUrl, folder, heap, settings } = this.#options
    const child = this.#child = spawn(process.execPath, [
      `--max-old-space-size=${heap}`, '--import', REPORT_HEAP, SERVER,
    ], {
      cwd: folder,
      // With NODE_ENV=production no mails are printed. SECRET is unset, so that the signing keys in the database can be
      // read.
      env: {
        PATH: process.env['PATH'],
        NODE_ENV: 'production',
        HOST: this.target.host,
        PORT: `${this.target.port}`,
        DATABASE_URL: databaseUrl,
        DATA_DIR: folder,
        ADMIN_EMAIL: ADMIN.email,
        ADMIN_PASSWORD: ADMIN.password,
        ...settings,
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    const listening = Promise.withResolvers<void>()
    createInterface({ input: child.stdout! }).on('line', (line) => this.#readLog(line))
    createInterface({ input: child.stderr! }).on('line', (line) => {
      const url = /listens on (\S+)/.exec(messagesIn(line))?.[1]
      if (url) {
        this.target.port = Number(new URL(url).port)
        listening.resolve()
      }
      this.#readError(line)
    })
    child.on('message', ({ inUse }: { inUse: number }) => { this.memoryInUse = inUse / 2 ** 20 })
    child.once('close', (code, signal) => {
      listening.reject(new Error(`the node did not start: ${this.#lastLines.join('\n')}`))
      if (!this.#stopping) this.#restart(`exit ${code ?? signal}`)
    })
    await listening.promise
  }

  /** Stops the node as an orchestrator does. Returns its exit code or signal, and the duration in milliseconds. */
  async stop (): Promise<{ code: number | NodeJS.Signals, took: number }> {
    this.#stopping = true
    const since = performance.now()
    const child = this.#child
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 30_000)
      await once(child, 'close')
      clearTimeout(timer)
    }
    return { code: child.exitCode ?? child.signalCode!, took: performance.now() - since }
  }

  /** Returns the resident memory in MiB, or undefined while the node is down. */
  async residentMemory (): Promise<number | undefined> {
    const status = await readFile(`/proc/${this.pid}/status`, 'utf8').catch(() => '')
    const kib = /^VmRSS:\s+(\d+)/m.exec(status)?.[1]
    return kib === undefined ? undefined : Number(kib) / 1024
  }

  /** Returns the seconds for which the main thread has used a processor, or undefined while the node is down. */
  async processorSeconds (): Promise<number | undefined> {
    const stat = await readFile(`/proc/${this.pid}/task/${this.pid}/stat`, 'utf8').catch(() => '')
    // The second field is the name, which may contain spaces. These are the fields 14 and 15, see proc(5).
    const [user, system] = stat.slice(stat.lastIndexOf(')') + 2).split(' ').slice(11).map(Number)
    return user === undefined ? undefined : (user + system!) / TICKS_PER_SECOND
  }

  /** Returns the number of files and sockets that the node has open. */
  async openFiles (): Promise<number> {
    return (await readdir(`/proc/${this.pid}/fd`).catch(() => [])).length
  }

  #restart (how: string): void {
    this.crashes.push(`${how}\n${this.#lastLines.join('\n')}`)
    this.#lastLines = []
    if (this.crashes.length > CRASHES) return
    this.start().catch((error: Error) => { this.crashes.push(error.message) })
  }

  #readLog (line: string): void {
    this.#remember(line)
    const entry = parse(line)
    if (!entry || entry.level < WARN) return
    const key = `${entry.level} ${entry.msg}${entry.err ? `: ${entry.err.message}` : ''}`.slice(0, 160)
    const known = this.logged.get(key) ?? { count: 0, example: line.slice(0, 2000) }
    known.count++
    this.logged.set(key, known)
  }

  #readError (line: string): void {
    this.#remember(line)
    if (/Warning:|"type":"\w*Warning"/.test(line)) this.warnings.push(line)
  }

  #remember (line: string): void {
    this.#lastLines.push(line.slice(0, 500))
    if (this.#lastLines.length > LINES_KEPT) this.#lastLines.shift()
  }
}

function parse (line: string): { level: number, msg: string, err?: { message: string } } | undefined {
  // The lines of a crash dump are not JSON.
  return line.startsWith('{"level":') ? JSON.parse(line) : undefined
}
