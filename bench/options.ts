import { parseArgs } from 'node:util'
import { compared } from './load.ts'

/** The parts besides the comparison, in the order in which they run. */
export const parts = [
  'floor', 'revalidate', 'fanout', 'flow', 'comeback', 'idle', 'scale', 'lists', 'overload', 'outbox', 'keyed', 'quotas',
  'metrics', 'api-keys', 'organizations', 'search', 'database-socket', 'postgraphile', 'uploads', 'soak',
  'long-run',
] as const
export type Part = typeof parts[number]

const works = [...compared, ...parts]
// These only run if they are requested: some take long, and one needs a package that is no dependency.
const usual = works.filter((work) => work !== 'soak' && work !== 'long-run' && work !== 'postgraphile')

/** The options of the command line. All numbers are positive. */
export type Options = ReturnType<typeof readOptions>

/** Parses the command line. Throws an `Error` whose sentence names the invalid option. */
export function readOptions (args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      works: { type: 'string', default: usual.join(',') },
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '5' },
      requests: { type: 'string', default: '20000' },
      connections: { type: 'string', default: '64' },
      users: { type: 'string', default: '100000' },
      posts: { type: 'string', default: '500000' },
      subscribers: { type: 'string', default: '2000' },
      idlers: { type: 'string', default: '10000' },
      many: { type: 'string', default: '1000000' },
      minutes: { type: 'string', default: '10' },
      rate: { type: 'string', default: '250' },
      workers: { type: 'string', default: '2' },
      json: { type: 'string' },
      profile: { type: 'string' },
    },
  })
  const { works: chosen, json, profile, ...numbers } = values
  return { ...readNumbers(numbers), works: readWorks(chosen.split(',')), json, profile }
}

function readWorks (chosen: string[]) {
  const unknown = chosen.find((name) => !(works as string[]).includes(name))
  if (unknown !== undefined) {
    throw new Error(`--works has the unknown name ${unknown}; the names are ${works.join(', ')}`)
  }
  return works.filter((work) => chosen.includes(work))
}

function readNumbers<Name extends string> (given: Record<Name, string>): Record<Name, number> {
  const entries = Object.entries<string>(given).map(([name, text]) => {
    if (!(Number(text) > 0)) throw new Error(`--${name} must be a number above zero`)
    return [name, Number(text)]
  })
  return Object.fromEntries(entries)
}

/** Throws if this process and its children may not open as many files. */
export function requireOpenFiles (wanted: number): void {
  // Node.js has already raised its soft limit as far as possible.
  const { userLimits } = process.report.getReport() as { userLimits: { open_files: { soft: number | 'unlimited' } } }
  const { soft } = userLimits.open_files
  if (soft !== 'unlimited' && Number(soft) < wanted) {
    throw new Error(
      `A process may open ${soft} files here, and ${wanted} are needed: raise the hard limit (ulimit -n ${wanted}), or choose other works or fewer --subscribers`
    )
  }
}
