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
