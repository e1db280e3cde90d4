import { InvalidInput } from './errors.ts'

/** The opaque cursor of a keyset page: the id of its last row. */
export function encodeCursor (id: string): string {
  return Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url')
}

/** Whether text could be a cursor: 16 octets in base64url. */
export function isCursor (text: string): boolean {
  return /^[\w-]{22}$/.test(text)
}

/** Throws `InvalidInput` for a cursor that never was one. */
export function decodeCursor (cursor: string): string {
  if (!isCursor(cursor)) throw new InvalidInput('after must be a cursor of a page before')
  const hex = Buffer.from(cursor, 'base64url').toString('hex')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

const LAST_POSITION = 2n ** 63n - 1n

/** Where a post stands in the order of all posts. */
export interface Place {
  /** A bigint, as text. */
  readonly position: string
  /** The epoch in which the position was given, see `db/migrations/epochs.ts`; undefined in cursors of before there were epochs. */
  readonly epoch?: number | undefined
}

/** The opaque cursor of a post: its place. It serves a page of posts as well as a subscription. */
export function encodePlace ({ position, epoch }: Required<Place>): string {
  const octets = Buffer.alloc(12)
  octets.writeBigUInt64BE(BigInt(position))
  octets.writeUInt32BE(epoch!, 8)
  return octets.toString('base64url')
}

/** Returns the place that a cursor of a post stands for. Throws `InvalidInput` for one that never was one. */
export function decodePlace (cursor: string): Place {
  const octets = Buffer.from(cursor, 'base64url')
  if (!/^([\w-]{11}|[\w-]{16})$/.test(cursor) || octets.readBigUInt64BE() > LAST_POSITION) throw new InvalidInput('after must be the cursor of a post')
  return { position: String(octets.readBigUInt64BE()), epoch: octets.length > 8 ? octets.readUInt32BE(8) : undefined }
}
