import type { RawBuilder } from 'kysely'
import type { IndexesOf } from './indexes.ts'

/** One or more statements without parameters, which are sent together. */
export type Script = (schema: string) => RawBuilder<unknown>

/**
 * What a migration does: a script in a transaction, or indexes to build, and a script in a transaction once they are
 * there. What the indexes need is created first, and once more if a build has failed.
 */
export type Migration = Script | { beforehand?: Script, indexes: IndexesOf, afterwards?: Script }
