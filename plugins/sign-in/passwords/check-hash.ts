import { createCipheriv, pbkdf2, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { verify } from '@node-rs/argon2'
import { impossibleHash, workOf, type StoredHash, type Work } from '../../../schema/sign-in/passwords/stored-hash.ts'

const runScrypt = promisify<
  Buffer, Buffer, number, { N: number, r: number, p: number, maxmem: number }, Buffer
>(scrypt)
const runPbkdf2 = promisify(pbkdf2)

const BITS = 32

/**
 * Returns whether a password, as its bytes in UTF-8, has a hash.
 * @param signerKey that of the Firebase project, for a hash of Firebase
 */
export async function checkHash (hash: StoredHash, password: Buffer, signerKey?: Buffer): Promise<boolean> {
  switch (hash.family) {
    case 'argon2': return verify(hash.text, password)
    case 'bcrypt': {
      // Loaded when it is first needed: most installations have no such hash.
      const bcrypt = await import('@node-rs/bcrypt')
      // It uses the first 72 bytes. Whatever follows them was ignored where the hash was made.
      return bcrypt.verify(password, hash.text)
    }
    case 'pbkdf2': {
      const { salt, iterations, digest } = hash
      return timingSafeEqual(await runPbkdf2(password, salt, iterations, hash.hash.length, digest), hash.hash)
    }
    case 'scrypt': return checkScrypt(hash, password, signerKey)
  }
}

async function checkScrypt (
  { logN, blockSize, parallelism, salt, hash, firebase }: Extract<StoredHash, { family: 'scrypt' }>, password: Buffer,
  signerKey: Buffer | undefined
): Promise<boolean> {
  const N = 2 ** logN
  // What OpenSSL needs, and a little more.
  const maxmem = 128 * blockSize * (N + parallelism + 2) + 1024 * 1024
  const costs = { N, r: blockSize, p: parallelism, maxmem }
  if (!firebase) return timingSafeEqual(await runScrypt(password, salt, hash.length, costs), hash)
  // https://github.com/firebase/scrypt: what scrypt derives is a key, with which that of the project is encrypted.
  const key = await runScrypt(password, Buffer.concat([salt, firebase.separator]), 32, costs)
  if (!signerKey) return false
  const encrypted = createCipheriv('aes-256-ctr', key, Buffer.alloc(16)).update(signerKey)
  return encrypted.length === hash.length && timingSafeEqual(encrypted, hash)
}

/** Work to do: a hash that no password has, and how many units of its group. */
export interface RemainingWork extends Work { readonly hash: StoredHash }

/**
 * Returns the rest of the work that every failed check takes, whatever hash was checked, or none: once the most
 * expensive hash of each group of kinds.
 * @param kinds the kinds of all hashes that there are
 * @param done the work that was done already
 */
export function remainingWork (kinds: readonly string[], done: Work): RemainingWork[] {
  const groups = new Map<string, RemainingWork>()
  for (const kind of kinds) {
    const hash = impossibleHash(kind)
    const { group, units } = workOf(hash)
    if (units > (groups.get(group)?.units ?? 0)) groups.set(group, { hash, group, units })
  }
  return [...groups.values()]
    .map(({ group, units, hash }) => ({ hash, group, units: units - (group === done.group ? done.units : 0) }))
    .filter(({ units }) => units > 0)
}

/** Does work with a password, one after the other. */
export async function doWork (works: readonly RemainingWork[], password: Buffer): Promise<void> {
  for (const { hash, units } of works) {
    if (hash.family === 'bcrypt') {
      for (const cost of bcryptCosts(units)) {
        await checkHash(impossibleHash(`$2b$${String(cost).padStart(2, '0')}$`), password)
      }
    } else if (hash.family === 'pbkdf2') {
      await runPbkdf2(password, hash.salt, units, 1, hash.digest)
    } else {
      await checkHash(hash, password)
    }
  }
}

/** Returns the costs that add up to units of work: each takes twice the work of the one below. */
export const bcryptCosts = (units: number): number[] =>
  Array.from({ length: BITS }, (_, cost) => cost).filter((cost) => (units & 2 ** cost) !== 0)
