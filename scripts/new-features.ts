// What one of the browsers of `browserslist` in package.json lacks, for the linter and for tests.
import bcd from '@mdn/browser-compat-data' with { type: 'json' }
import type { Identifier, SimpleSupportStatement } from '@mdn/browser-compat-data'
import manifest from '../package.json' with { type: 'json' }

const names = { chrome: 'chrome', edge: 'edge', firefox: 'firefox', safari: 'safari', ios_saf: 'safari_ios' } as const
const supported = manifest.browserslist.map((entry) => {
  const [, name = '', version = ''] = /^(\w+) >= ([\d.]+)$/.exec(entry)!
  return [names[name as keyof typeof names], numberOf(version)] as const
})

function numberOf (version: string): number {
  const [major = 0, minor = 0] = version.replace('≤', '').split('.').map(Number)
  return major * 1000 + minor
}

function has (statement: SimpleSupportStatement, version: number): boolean {
  const { version_added: added, version_removed: removed, flags, prefix, alternative_name: other } = statement
  if (typeof added !== 'string' || added === 'preview' || flags || prefix || other) return false
  return numberOf(added) <= version && !(typeof removed === 'string' && numberOf(removed) <= version)
}

/** Returns whether one of the supported browsers lacks something. */
function isNew ({ __compat: compat }: Identifier): boolean {
  return compat !== undefined && supported.some(([name, version]) => {
    const statements = [compat.support[name] ?? []].flat() as SimpleSupportStatement[]
    return !statements.some((statement) => has(statement, version))
  })
}

/** Returns the paths of what is new: an interface or a function, or a member of one. */
function * listNew (folder: Identifier, path: readonly string[], depth: number): Generator<string[]> {
  for (const [name, found] of Object.entries(folder) as [string, Identifier][]) {
    if (!/^\w+$/.test(name) || name === '__compat' || name.endsWith('_event')) continue
    if (isNew(found)) yield [...path, name]
    else if (depth > 1) yield * listNew(found, [...path, name], depth - 1)
  }
}

/** The paths of all that is new, such as `['AbortSignal', 'timeout_static']` and `['Set', 'union']`. */
export const newFeatures: readonly string[][] = [
  ...listNew(bcd.api as never, [], 2), ...listNew(bcd.javascript.builtins as never, [], 3),
]
