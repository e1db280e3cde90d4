import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

// The prefix of an encrypted text. It names the scheme, in case there is ever another one.
const VERSION = 'sealed1.'
const CIPHER = 'aes-256-gcm'
const SALT_BYTES = 16
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Returns whether a text was encrypted by `encrypt`. */
export const isEncrypted = (text: string): boolean => text.startsWith(VERSION)

/**
 * Encrypts a text with AES-256-GCM, for storage where others may read it. Each text has its own key, which HKDF-SHA-256
 * (RFC 5869) derives from the secret and a random salt. `name` is authenticated: it must be the same for decryption.
 */
export function encrypt (secret: string, name: string, text: string): string {
  const salt = randomBytes(SALT_BYTES)
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, deriveKey(secret, salt), nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(name))
  const bytes = Buffer.concat([salt, nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return `${VERSION}${bytes.toString('base64url')}`
}

/** Returns the decrypted text. Throws if the secret or the name differs from the one of the encryption, or if the text was changed. */
export function decrypt (secret: string, name: string, encrypted: string): string {
  const bytes = Buffer.from(encrypted.slice(VERSION.length), 'base64url')
  const nonce = bytes.subarray(SALT_BYTES, SALT_BYTES + NONCE_BYTES)
  const decipher = createDecipheriv(CIPHER, deriveKey(secret, bytes.subarray(0, SALT_BYTES)), nonce, { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(name))
    .setAuthTag(bytes.subarray(-TAG_BYTES))
  return decipher.update(bytes.subarray(SALT_BYTES + NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
}

function deriveKey (secret: string, salt: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, salt, 'usher signing key', 32))
}
