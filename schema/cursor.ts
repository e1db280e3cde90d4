import { InvalidInput } from './errors.ts'

/** The opaque cursor of a keyset page: the id of its last row. */
export function encodeCursor (id: string): string {
  return Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url')
}

/** Throws `InvalidInput` for a cursor that never was one. */
export function decodeCursor (cursor: string): string {
  const hex = Buffer.from(cursor, 'base64url').toString('hex')
  if (!/^[\w-]{22}$/.test(cursor) || hex.length !== 32) throw new InvalidInput('after must be a cursor of a page before')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
