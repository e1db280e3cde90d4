import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)

export const works = ['user', 'protected', 'list', 'graphql', 'createUser', 'createPost'] as const
export type Work = typeof works[number]

export interface Sample {
  /** Requests a second. */
  rate: number
  /** The 99th percentile of latency, in milliseconds. */
  p99: number
  /** Answers other than 2xx, and socket errors. */
  failures: number
}

export interface Load { url: string, work: Work, idsFile: string, token: string, seconds: number, connections: number }

/** Which generator there is: wrk, where the machine has it, is not the limit; autocannon may be. */
export async function findGenerator (): Promise<'wrk' | 'autocannon'> {
  return run('wrk', ['-v']).then(() => 'wrk', (error) => error.code === 'ENOENT' ? 'autocannon' : 'wrk')
}

/** Loads a server from a process of its own. */
export async function shoot (generator: 'wrk' | 'autocannon', load: Load): Promise<Sample> {
  return generator === 'wrk' ? shootWrk(load) : shootAutocannon(load)
}

async function shootWrk ({ url, work, idsFile, token, seconds, connections }: Load): Promise<Sample> {
  const script = fileURLToPath(new URL('requests.lua', import.meta.url))
  const { stdout } = await run('wrk', ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '-s', script, url, '--', work, idsFile, token])
  const number = (pattern: RegExp) => Number(pattern.exec(stdout)?.[1] ?? 0)
  const [, p99, unit] = /99%\s+([\d.]+)(us|ms|s)/.exec(stdout)!
  const socketErrors = [.../(?:connect|read|write|timeout) (\d+)/g[Symbol.matchAll](stdout)].reduce((sum, [, count]) => sum + Number(count), 0)
  return {
    rate: number(/Requests\/sec:\s+([\d.]+)/),
    p99: Number(p99) * { us: 0.001, ms: 1, s: 1000 }[unit as 'ms'],
    failures: number(/Non-2xx or 3xx responses: (\d+)/) + socketErrors,
  }
}

async function shootAutocannon (load: Load): Promise<Sample> {
  const script = fileURLToPath(new URL('autocannon.ts', import.meta.url))
  const { stdout } = await run(process.execPath, [script, JSON.stringify(load)], { maxBuffer: 1e8 })
  return JSON.parse(stdout)
}
