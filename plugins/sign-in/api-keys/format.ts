import { randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

// The prefix and the checksum let scanners for secrets find keys in files without asking anybody (docs/api-keys.md).
const SHAPE = /^usher_[0-9A-Za-z]{49}$/
const SECRET_BYTES = 32
// 62^43 is just over 2^256, and 62^6 over 2^32.
const SECRET_DIGITS = 43
const CHECKSUM_DIGITS = 6

/** Whether a bearer token is meant to be an API key: no access token begins like this. */
export const isApiKey = (token: string): boolean => token.startsWith('usher_')

/** Returns a new API key: `usher_`, 256 random bits, and the checksum of these two, both in base 62. */
export function createApiKey (): string {
  const secret = `usher_${toBase62(BigInt(`0x${randomBytes(SECRET_BYTES).toString('hex')}`), SECRET_DIGITS)}`
  return secret + checksumOf(secret)
}

/** Returns whether a text has the form and the checksum of an API key. It takes about a microsecond. */
export function isWellFormed (key: string): boolean {
  return SHAPE.test(key) && checksumOf(key.slice(0, -CHECKSUM_DIGITS)) === key.slice(-CHECKSUM_DIGITS)
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

function checksumOf (text: string): string {
  let digits = ''
  for (let rest = crc32(text); digits.length < CHECKSUM_DIGITS; rest = Math.floor(rest / 62)) {
    digits = ALPHABET[rest % 62] + digits
  }
  return digits
}

function toBase62 (value: bigint, length: number): string {
  let digits = ''
  for (let rest = value; digits.length < length; rest /= 62n) digits = ALPHABET[Number(rest % 62n)] + digits
  return digits
}
