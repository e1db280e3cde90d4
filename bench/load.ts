import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
// A request that takes longer counts as a socket error and has no latency.
const PATIENCE_SECONDS = 10

/** The works by which the servers are compared. */
export const compared = [
  'user', 'protected', 'list', 'graphql', 'createUser', 'replaceUser', 'patchUser', 'createPost',
] as const
export type Compared = typeof compared[number]
/** What a generator can send. `mixed` sends all of them in turn, mostly reads. */
export type Work = Compared | 'userByMember' | 'revalidated' | 'createUserOnce' | 'createPostOnce' | 'firstPage' | 'page' |
  'longPage' | 'listed' | 'postgraphile' | 'mixed'

export type Generator = 'wrk' | 'autocannon'

/** The last line that a generator prints, as JSON. Latencies are in milliseconds. */
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
  /** Responses per second, with any status. */
  rate: number
  /** Responses per second with a 2xx or 3xx status. */
  goodput: number
  /** Latencies of all responses in milliseconds: percentiles and the longest. */
  p50: number
  p99: number
  max: number
  /** Responses with status 503, if `statuses` is set. */
  refused: number
  /** Responses with a status of 4xx or 5xx, and socket errors. */
  failures: number
}

export interface Load {
  url: string
  work: Work
  /**
   * The file with one key per line: ids of users, cursors for `page` and `longPage`, query strings for `listed`, or an
   * id and an entity tag for `revalidated`.
   */
  keysFile: string
  token: string
  seconds: number
  connections: number
  /** Whether to count 503 separately, which makes wrk somewhat slower. */
  statuses?: boolean
}

/** Returns the generator to use. wrk, if it is installed, does not limit the results; autocannon may. */
export async function findGenerator (): Promise<Generator> {
  return run('wrk', ['-v']).then(() => 'wrk', (error) => error.code === 'ENOENT' ? 'autocannon' : 'wrk')
}

/** Loads a server from another process and returns the results. */
export async function shoot (generator: Generator, load: Load): Promise<Sample> {
  const { stdout } = await (generator === 'wrk' ? runWrk(load) : runAutocannon(load))
  return sampleOf(JSON.parse(stdout.trimEnd().split('\n').at(-1)!))
}

function runWrk ({ url, work, keysFile, token, seconds, connections, statuses }: Load) {
  const script = fileURLToPath(new URL('requests.lua', import.meta.url))
  return run('wrk', [
    '-t1', `-c${connections}`, `-d${seconds}s`, `--timeout=${PATIENCE_SECONDS}s`, '-s', script, url, '--', work,
    keysFile, token, ...statuses ? ['statuses'] : [],
  ])
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
