import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { FirebaseParameters } from '../../schema/sign-in/passwords/stored-hash.ts'

const MAX_BYTES = 64 * 1024

/** The parameters of a Firebase project that its hashes need, and the secret one among them. */
export interface FirebaseConfig extends FirebaseParameters {
  readonly signerKey: Buffer
}

/**
 * Reads the hash parameters of a Firebase project from a file: as its console shows them, or as JSON with the same
 * names. Throws an `Error` with a sentence.
 */
export async function readFirebaseConfig (path: string): Promise<FirebaseConfig> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${path} cannot be read (${error.code}).`, { cause: error })
  })
  const valueOf = (name: string) => new RegExp(`"?${name}"?\\s*:\\s*"?([A-Za-z0-9+/_=-]*)`).exec(text)?.[1]
  const [key, separator] = ['base64_signer_key', 'base64_salt_separator'].map(valueOf)
  const signerKey = Buffer.from(key ?? '', 'base64')
  if (text.length > MAX_BYTES || separator === undefined || signerKey.length < 16) {
    throw new Error(
      `${path} must have base64_signer_key and base64_salt_separator, as the Firebase console shows them under Authentication, ` +
      'Users, Password hash parameters.'
    )
  }
  // It tells keys apart, and tells nothing about them.
  const keyId = createHash('sha256').update(signerKey).digest('hex').slice(0, 16)
  return { keyId, signerKey, separator: Buffer.from(separator, 'base64') }
}
