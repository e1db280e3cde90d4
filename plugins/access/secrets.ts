import { createHash, randomBytes } from 'node:crypto'

/** Returns the secret of a new session, and the key that signs its cookies. */
export const createSecrets = () => ({ secret: randomBytes(32).toString('base64url'), rotationKey: randomBytes(32) })

/**
 * Returns the hash of a secret, which is what the database stores. A slow hash is only needed for secrets that people
 * choose.
 */
export const hashSecret = (secret: string): Uint8Array => createHash('sha256').update(secret).digest()

/**
 * Returns what is hashed of the secret of a session of the console. It differs from that of other sessions, so that
 * neither works in the place of the other: a refresh would extend it.
 */
export const consoleSecret = (secret: string): string => `console ${secret}`
