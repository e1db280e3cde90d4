import { InvalidInput } from './errors.ts'

/** Returns the opaque cursor of a keyset page: the id of the page's last row in base64url. */
export function encodeCursor (id: string): string {
  return Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url')
}

/** Returns whether a text has the form of a cursor: 16 bytes in base64url. */
export function isCursor (text: string): boolean {
  return /^[\w-]{22}$/.test(text)
}

/** Returns the id in a cursor. Throws `InvalidInput` if the text is not a cursor. */
export function decodeCursor (cursor: string): string {
  if (!isCursor(cursor)) throw new InvalidInput('after must be a cursor from a previous page')
  const hex = Buffer.from(cursor, 'base64url').toString('hex')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}

/** The largest position that a post can have. */
export const LAST_POSITION = 2n ** 63n - 1n

/** The position of a post in commit order, and the epoch in which it was assigned. */
export interface Place {
  /** A PostgreSQL bigint, as text. */
  readonly position: string
  /** The epoch, see `current_epoch` in `db/migrations/0001.ts`. */
  readonly epoch: number
}

/** Returns the opaque cursor of a post: its position and epoch. It works for pages of posts and for subscriptions. */
export function encodePlace ({ position, epoch }: Place): string {
  const bytes = Buffer.alloc(12)
  bytes.writeBigUInt64BE(BigInt(position))
  bytes.writeUInt32BE(epoch, 8)
  return bytes.toString('base64url')
}

/** Returns whether a text is the cursor of a post. */
export function isPlace (cursor: string): boolean {
  return /^[\w-]{16}$/.test(cursor) && Buffer.from(cursor, 'base64url').readBigUInt64BE() <= LAST_POSITION
}

/** Returns the position and epoch in the cursor of a post. Throws `InvalidInput` if the text is not such a cursor. */
export function decodePlace (cursor: string): Place {
  if (!isPlace(cursor)) throw new InvalidInput('after must be the cursor of a post')
  const bytes = Buffer.from(cursor, 'base64url')
  return { position: String(bytes.readBigUInt64BE()), epoch: bytes.readUInt32BE(8) }
}
