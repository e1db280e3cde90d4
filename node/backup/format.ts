import { Type, type Static } from '@sinclair/typebox'
import packageJson from 'fastify-usher/package.json' with { type: 'json' }
import { isBackupTable } from '../../db/tables/backup-tables.ts'
import { createParser } from '../../schema/http/validator.ts'

/** The version of the format. A release reads only its own one. */
export const FORMAT = 1

/** The release of this code. */
export const RELEASE = packageJson.version

const Names = { maxLength: 63, minLength: 1 }

/** The first entry of a backup: what it contains. */
const Manifest = Type.Object({
  format: Type.Literal('usher backup'),
  version: Type.Integer(),
  /** The release of Usher that has written it. */
  release: Type.String({ maxLength: 100 }),
  createdAt: Type.String({ maxLength: 100 }),
  /** The version of PostgreSQL that it was read from. */
  postgresql: Type.String({ maxLength: 100 }),
  /** The epoch of posts, see `current_epoch` in `db/migrations/0001.ts`. */
  epoch: Type.Integer({ minimum: 0 }),
  migrations: Type.Array(Type.String({ maxLength: 200 }), { maxItems: 10_000 }),
  /** In the order in which they can be restored. */
  tables: Type.Array(Type.Object({
    name: Type.String(Names),
    columns: Type.Array(
      Type.Object({ name: Type.String(Names), type: Type.String({ maxLength: 200 }) }), { minItems: 1, maxItems: 2000 }
    ),
  }), { maxItems: 1000 }),
  /** The last numbers that were assigned. */
  sequences: Type.Array(Type.Object({
    table: Type.String(Names),
    column: Type.String(Names),
    value: Type.String({ pattern: '^\\d{1,19}$' }),
    isCalled: Type.Boolean(),
  }), { maxItems: 1000 }),
})

/** The last entry of a backup: how much it contains. A backup without it is incomplete. */
const Summary = Type.Object({
  entries: Type.Integer({ minimum: 0 }),
  /** The SHA-256 hash of all lists of checksums, one after the other. */
  checksums: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  rows: Type.Record(Type.String(Names), Type.Integer({ minimum: 0 })),
  files: Type.Integer({ minimum: 0 }),
  fileBytes: Type.Integer({ minimum: 0 }),
  /** The number of uploads whose bytes could not be read. */
  missing: Type.Integer({ minimum: 0 }),
})

export type Manifest = Static<typeof Manifest>
export type Summary = Static<typeof Summary>

/** The names of entries. */
export const MANIFEST = 'backup.json'
export const SUMMARY = 'end.json'
export const partOf = (table: string, number: number): string =>
  `tables/${table}/${String(number).padStart(8, '0')}.copy`
export const fileOf = (id: string): string => `uploads/${id}`
export const checksumsOf = (number: number): string => `checksums/${String(number).padStart(8, '0')}.sha256`

/** What an entry of a backup is. */
export type Entry = DataEntry | { kind: 'checksums', number: number } | { kind: 'summary' }
export type DataEntry = { kind: 'table', table: string, number: number } | { kind: 'file', id: string }

/** Returns what an entry is, or undefined if no backup has such an entry. */
export function entryOf (name: string): Entry | undefined {
  if (name === SUMMARY) return { kind: 'summary' }
  const [, folder, middle = ''] = /^(tables|uploads|checksums)\/([\w/.-]+)$/.exec(name) ?? []
  const [, list] = /^(\d{8,})\.sha256$/.exec(middle) ?? []
  if (folder === 'checksums' && list) return { kind: 'checksums', number: Number(list) }
  if (folder === 'uploads' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(middle)) {
    return { kind: 'file', id: middle }
  }
  const [, table = '', part] = /^([a-z_]+)\/(\d{8,})\.copy$/.exec(middle) ?? []
  if (folder === 'tables' && isBackupTable(table)) return { kind: 'table', table, number: Number(part) }
}

/** A failure of a backup or of a restore. The message says what is wrong and what to do. */
export class BackupError extends Error {}

/** Return the content of an entry. Throw an `Error` if it has another form. */
export const parseManifest = createParser(Manifest)
export const parseSummary = createParser(Summary)

/** Returns a number with its noun, such as `1 file` and `2 files`. */
export const describeCount = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** Formats a number of bytes for people. */
export function describeBytes (bytes: number): string {
  const index = bytes < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(bytes) / 10))
  return `${index === 0 ? bytes : (bytes / 1024 ** index).toFixed(1)} ${['bytes', 'KiB', 'MiB', 'GiB', 'TiB'][index]}`
}
