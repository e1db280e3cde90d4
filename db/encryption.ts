import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

// The prefix of an encrypted text. It names the scheme, in case there is ever another one.
const VERSION = 'sealed1.'
const CIPHER = 'aes-256-gcm'
const SALT_OCTETS = 16
const NONCE_OCTETS = 12
const TAG_OCTETS = 16

/** Returns whether a text was encrypted by `encrypt`. */
export const isEncrypted = (text: string): boolean => text.startsWith(VERSION)

/**
 * Encrypts a text with AES-256-GCM, for storage where others may read it. Each text has its own key, which HKDF-SHA-256
 * (RFC 5869) derives from the secret and a random salt. `name` is authenticated: it must be the same for decryption.
 */
export function encrypt (secret: string, name: string, text: string): string {
  const salt = randomBytes(SALT_OCTETS)
  const nonce = randomBytes(NONCE_OCTETS)
  const cipher = createCipheriv(CIPHER, deriveKey(secret, salt), nonce, { authTagLength: TAG_OCTETS }).setAAD(Buffer.from(name))
  const octets = Buffer.concat([salt, nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return `${VERSION}${octets.toString('base64url')}`
}

/** Returns the decrypted text. Throws if the secret or the name differs from the one of the encryption, or if the text was changed. */
export function decrypt (secret: string, name: string, encrypted: string): string {
  const octets = Buffer.from(encrypted.slice(VERSION.length), 'base64url')
  const nonce = octets.subarray(SALT_OCTETS, SALT_OCTETS + NONCE_OCTETS)
  const decipher = createDecipheriv(CIPHER, deriveKey(secret, octets.subarray(0, SALT_OCTETS)), nonce, { authTagLength: TAG_OCTETS })
    .setAAD(Buffer.from(name))
    .setAuthTag(octets.subarray(-TAG_OCTETS))
  return decipher.update(octets.subarray(SALT_OCTETS + NONCE_OCTETS, -TAG_OCTETS), undefined, 'utf8') + decipher.final('utf8')
}

function deriveKey (secret: string, salt: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, salt, 'usher signing key', 32))
}
