import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

// What it begins with says how it was sealed, should there ever be another way.
const VERSION = 'sealed1.'
const CIPHER = 'aes-256-gcm'
const SALT_OCTETS = 16
const NONCE_OCTETS = 12
const TAG_OCTETS = 16

/** Whether a text is a sealed one. */
export const isEncrypted = (text: string): boolean => text.startsWith(VERSION)

/**
 * Seals a text, so that it can be stored where others may look: AES-256-GCM, with a key of its own that HKDF-SHA-256
 * (RFC 5869) makes of the secret and a random salt. It opens only as what it was sealed as: `name` is authenticated.
 */
export function encrypt (secret: string, name: string, text: string): string {
  const salt = randomBytes(SALT_OCTETS)
  const nonce = randomBytes(NONCE_OCTETS)
  const cipher = createCipheriv(CIPHER, deriveKey(secret, salt), nonce, { authTagLength: TAG_OCTETS }).setAAD(Buffer.from(name))
  const octets = Buffer.concat([salt, nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return `${VERSION}${octets.toString('base64url')}`
}

/** The text. Throws where it was sealed with another secret or as something else, or has been changed. */
export function decrypt (secret: string, name: string, sealed: string): string {
  const octets = Buffer.from(sealed.slice(VERSION.length), 'base64url')
  const nonce = octets.subarray(SALT_OCTETS, SALT_OCTETS + NONCE_OCTETS)
  const decipher = createDecipheriv(CIPHER, deriveKey(secret, octets.subarray(0, SALT_OCTETS)), nonce, { authTagLength: TAG_OCTETS })
    .setAAD(Buffer.from(name))
    .setAuthTag(octets.subarray(-TAG_OCTETS))
  return decipher.update(octets.subarray(SALT_OCTETS + NONCE_OCTETS, -TAG_OCTETS), undefined, 'utf8') + decipher.final('utf8')
}

function deriveKey (secret: string, salt: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, salt, 'usher signing key', 32))
}
