import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { foldCode } from '../../../schema/strings/code.ts'

// What all authenticator apps know (RFC 6238). Many ignore other parameters of an address.
const DIGITS = 6
const PERIOD_SECONDS = 30
// How many steps the clock of a device may be ahead or behind.
const DRIFT = 1
// As long as the hashes of HMAC-SHA-1 (RFC 4226 4, R6).
const SECRET_BYTES = 20
const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

/** Returns a new secret in base32. */
export const createTotpSecret = (): string => toBase32(randomBytes(SECRET_BYTES))

/** Returns the code of a time step (RFC 4226 5.3). */
export function codeOf (secret: string, step: number): string {
  const counter = Buffer.alloc(8)
  counter.writeBigUInt64BE(BigInt(step))
  const hash = createHmac('sha1', fromBase32(secret)).update(counter).digest()
  const number = hash.readUInt32BE(hash.at(-1)! & 0xf) & 0x7fffffff
  return String(number % 10 ** DIGITS).padStart(DIGITS, '0')
}

/**
 * Returns the time step of a code, or undefined if it is that of no step that is accepted now. Steps up to `lastStep`
 * are not accepted.
 * @param now milliseconds since 1970
 */
export function findStep (secret: string, given: string, now: number, lastStep: number): number | undefined {
  const code = Buffer.from(foldCode(given))
  if (code.length !== DIGITS) return undefined
  const current = Math.floor(now / 1000 / PERIOD_SECONDS)
  for (let step = Math.max(current - DRIFT, lastStep + 1); step <= current + DRIFT; step++) {
    if (timingSafeEqual(code, Buffer.from(codeOf(secret, step)))) return step
  }
  return undefined
}

/**
 * Returns the address from which authenticator apps read a secret. In its label, a colon separates the issuer from the
 * account, also an encoded one, so neither may have one
 * (https://github.com/google/google-authenticator/wiki/Key-Uri-Format).
 */
export function totpUri ({ secret, issuer, account }: { secret: string, issuer: string, account: string }): string {
  const [name, label] = [issuer, account].map((text) => encodeURIComponent(text.replaceAll(/\s*:\s*/g, ' ').trim()))
  // A name of colons only is none.
  const [prefix, parameter] = name === '' ? ['', ''] : [`${name}:`, `&issuer=${name}`]
  return `otpauth://totp/${prefix}${label}?secret=${secret}${parameter}&algorithm=SHA1&digits=${DIGITS}&period=${PERIOD_SECONDS}`
}

/** Returns bytes in base32 (RFC 4648 6). Five bytes have eight characters; other lengths are not needed. */
export function toBase32 (bytes: Uint8Array): string {
  let bits = ''
  for (const byte of bytes) bits += byte.toString(2).padStart(8, '0')
  return bits.replaceAll(/.{5}/g, (five) => BASE32[parseInt(five, 2)]!)
}

function fromBase32 (text: string): Uint8Array {
  const bits = Array.from(text, (character) => BASE32.indexOf(character).toString(2).padStart(5, '0')).join('')
  return Uint8Array.from(bits.match(/.{8}/g) ?? [], (byte) => parseInt(byte, 2))
}
