import { parseArgs } from 'node:util'
import { availableParallelism } from 'node:os'
import { origins, type Origin } from './combined/origins.ts'

/** The options of the command line. */
export type Options = ReturnType<typeof readOptions>

/** Parses the command line. Throws an `Error` whose sentence names the invalid option. */
export function readOptions (args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      requests: { type: 'string', default: '20000' },
      seed: { type: 'string', default: `${1 + Math.floor(Math.random() * 1e9)}` },
      workers: { type: 'string', default: `${Math.min(4, availableParallelism())}` },
      rate: { type: 'string', default: '700' },
      lanes: { type: 'string', default: '12' },
      heap: { type: 'string', default: '1024' },
      only: { type: 'string', default: '' },
      without: { type: 'string', default: '' },
      combined: { type: 'boolean', default: false },
      seconds: { type: 'string', default: '15' },
      rounds: { type: 'string', default: '3' },
      users: { type: 'string', default: '50' },
      slow: { type: 'string', default: '500' },
      from: { type: 'string', default: '' },
      networks: { type: 'string', default: '2000' },
      json: { type: 'string' },
    },
  })
  const { only, without, combined, from, json, ...numbers } = values
  return {
    ...readNumbers(numbers),
    only: split(only),
    without: split(without),
    combined: combined || from !== '',
    from: readOrigins(from),
    json,
  }
}

const split = (list: string) => list.split(',').filter(Boolean)

function readOrigins (from: string): Origin[] {
  const given = split(from)
  const unknown = given.find((name) => !(origins as readonly string[]).includes(name))
  if (unknown !== undefined) throw new Error(`--from has the unknown name ${unknown}; the names are ${origins.join(', ')}`)
  return origins.filter((origin) => given.includes(origin))
}

function readNumbers<Name extends string> (given: Record<Name, string>): Record<Name, number> {
  const entries = Object.entries<string>(given).map(([name, text]) => {
    if (!(Number(text) > 0)) throw new Error(`--${name} must be a number above zero`)
    return [name, Number(text)]
  })
  return Object.fromEntries(entries)
}

/** A choice of attacks: only some of them, or all without some. */
export interface Choice { readonly only: readonly string[], readonly without: readonly string[] }

/** Returns the chosen names. Throws an `Error` if a name is unknown. */
export function chooseNames (names: readonly string[], { only, without }: Choice): string[] {
  const unknown = [...only, ...without].find((name) => !names.includes(name))
  if (unknown !== undefined) throw new Error(`there is no attack ${unknown}; there are ${names.join(', ')}`)
  return names.filter((name) => (only.length === 0 || only.includes(name)) && !without.includes(name))
}
