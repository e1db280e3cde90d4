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

/** The opaque cursor of a post: its position. It serves a page of posts as well as a subscription. */
export function encodePosition (position: string): string {
  const octets = Buffer.alloc(8)
  octets.writeBigUInt64BE(BigInt(position))
  return octets.toString('base64url')
}

/** The position that a cursor of a post stands for. Throws `InvalidInput` for one that never was one. */
export function decodePosition (cursor: string): string {
  const octets = Buffer.from(cursor, 'base64url')
  if (!/^[\w-]{11}$/.test(cursor) || octets.readBigUInt64BE() > LAST_POSITION) throw new InvalidInput('after must be the cursor of a post')
  return String(octets.readBigUInt64BE())
}
