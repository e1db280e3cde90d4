import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
// What takes longer has no latency, but is a socket error.
const PATIENCE_SECONDS = 10

/** The works that the servers are compared by. */
export const compared = ['user', 'protected', 'list', 'graphql', 'createUser', 'createPost'] as const
export type Compared = typeof compared[number]
/** What a generator can ask for; `mixed` is all of it in turn, mostly reads. */
export type Work = Compared | 'firstPage' | 'page' | 'longPage' | 'mixed'

export type Generator = 'wrk' | 'autocannon'

/** The last line of a generator, as JSON; latencies in milliseconds. */
export interface Counts {
  seconds: number
  answers: number
  not2xx: number
  refused: number
  socketErrors: number
  p50: number
  p99: number
  max: number
}

export interface Sample {
  /** Answers a second, whatever they say. */
  rate: number
  /** Answers of 2xx a second. */
  goodput: number
  /** The latency of all answers, in milliseconds: percentiles, and the longest. */
  p50: number
  p99: number
  max: number
  /** Answers of 503, where `statuses` are asked for. */
  refused: number
  /** Other answers than 2xx, and socket errors. */
  failures: number
}

export interface Load {
  url: string
  work: Work
  /** Ids of users, or cursors for `page` and `longPage`, a line each. */
  keysFile: string
  token: string
  seconds: number
  connections: number
  /** Whether 503 is counted apart, which costs wrk some speed. */
  statuses?: boolean
}

/** Which generator there is: wrk, where the machine has it, is not the limit; autocannon may be. */
export async function findGenerator (): Promise<Generator> {
  return run('wrk', ['-v']).then(() => 'wrk', (error) => error.code === 'ENOENT' ? 'autocannon' : 'wrk')
}

/** Loads a server from a process of its own. */
export async function shoot (generator: Generator, load: Load): Promise<Sample> {
  const { stdout } = await (generator === 'wrk' ? runWrk(load) : runAutocannon(load))
  return sampleOf(JSON.parse(stdout.trimEnd().split('\n').at(-1)!))
}

function runWrk ({ url, work, keysFile, token, seconds, connections, statuses }: Load) {
  const script = fileURLToPath(new URL('requests.lua', import.meta.url))
  return run('wrk', ['-t1', `-c${connections}`, `-d${seconds}s`, `--timeout=${PATIENCE_SECONDS}s`, '-s', script, url, '--', work, keysFile, token, ...statuses ? ['statuses'] : []])
}

function runAutocannon (load: Load) {
  const script = fileURLToPath(new URL('autocannon.ts', import.meta.url))
  return run(process.execPath, [script, JSON.stringify(load)], { maxBuffer: 1e8 })
}

function sampleOf ({ seconds, answers, not2xx, refused, socketErrors, ...latencies }: Counts): Sample {
  return {
    rate: answers / seconds,
    goodput: (answers - not2xx) / seconds,
    ...latencies,
    refused,
    failures: not2xx - refused + socketErrors,
  }
}
