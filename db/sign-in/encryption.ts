import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

// The prefix of an encrypted text. It names the scheme, in case there is ever another one.
const VERSION = 'sealed1.'
const CIPHER = 'aes-256-gcm'
const SALT_BYTES = 16
const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * What a text is encrypted for. Keys for different purposes differ, so that one kind of text never passes for another.
 * The first one also encrypts mails.
 */
export type Purpose = 'signing key' | 'totp' | 'signer key' | 'provider tokens'

/** Returns whether a text was encrypted by `encrypt`. */
export const isEncrypted = (text: string): boolean => text.startsWith(VERSION)

/**
 * Encrypts a text with AES-256-GCM, for storage where others may read it. Each text has its own key, which HKDF-SHA-256
 * (RFC 5869) derives from the secret and a random salt. `name` is authenticated: it must be the same for decryption.
 */
export function encrypt (secret: string, name: string, text: string, purpose: Purpose = 'signing key'): string {
  const salt = randomBytes(SALT_BYTES)
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, deriveKey(secret, salt, purpose), nonce, { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(name))
  const bytes = Buffer.concat([salt, nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
  return `${VERSION}${bytes.toString('base64url')}`
}

/**
 * Returns the decrypted text. Throws if the secret, the name or the purpose differs from that of the encryption, or if
 * the text was changed.
 */
export function decrypt (secret: string, name: string, encrypted: string, purpose: Purpose = 'signing key'): string {
  const bytes = Buffer.from(encrypted.slice(VERSION.length), 'base64url')
  const nonce = bytes.subarray(SALT_BYTES, SALT_BYTES + NONCE_BYTES)
  const decipher = createDecipheriv(
    CIPHER, deriveKey(secret, bytes.subarray(0, SALT_BYTES), purpose), nonce, { authTagLength: TAG_BYTES }
  )
    .setAAD(Buffer.from(name))
    .setAuthTag(bytes.subarray(-TAG_BYTES))
  return decipher.update(bytes.subarray(SALT_BYTES + NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') +
    decipher.final('utf8')
}

/** The secrets of a node: one that encrypts and decrypts, and a former one that only decrypts. */
export interface Secrets {
  readonly secret?: string | undefined
  readonly formerSecret?: string | undefined
}

/**
 * Returns the text that was encrypted with one of the secrets, and whether that was the former one. Throws as `decrypt`
 * does, and if there is no secret.
 */
export function decryptWithAny (
  { secret, formerSecret }: Secrets, name: string, encrypted: string, purpose?: Purpose
): { text: string, isFormer: boolean } {
  if (secret !== undefined && formerSecret === undefined) {
    return { text: decrypt(secret, name, encrypted, purpose), isFormer: false }
  }
  for (const each of [secret, formerSecret]) {
    if (each === undefined) continue
    try {
      return { text: decrypt(each, name, encrypted, purpose), isFormer: each === formerSecret }
    } catch (error) {
      if (each === formerSecret) throw error
    }
  }
  throw new Error('There is no secret')
}

/** Does the same, but returns undefined if no secret decrypts the text. */
export function tryDecrypt (
  ...parameters: Parameters<typeof decryptWithAny>
): ReturnType<typeof decryptWithAny> | undefined {
  try {
    return decryptWithAny(...parameters)
  } catch {
    return undefined
  }
}

function deriveKey (secret: string, salt: Uint8Array, purpose: Purpose): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, salt, `usher ${purpose}`, 32))
}
