import { createCipheriv, createHash, pbkdf2Sync, randomBytes, scryptSync } from 'node:crypto'
import { hash as argon2 } from '@node-rs/argon2'
import { hash as bcrypt } from '@node-rs/bcrypt'

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64').replace(/=+$/, '')

/** The project of Firebase whose users the tests import. */
export const firebase = {
  signerKey: randomBytes(64),
  separator: Buffer.from('Bw==', 'base64'),
  /** What its console shows. */
  get config () {
    return `hash_config {\n  algorithm: SCRYPT,\n  base64_signer_key: ${this.signerKey.toString('base64')},\n` +
      '  base64_salt_separator: Bw==,\n  rounds: 8,\n  mem_cost: 14,\n}\n'
  },
  get keyId () { return createHash('sha256').update(this.signerKey).digest('hex').slice(0, 16) },
}

/**
 * Returns a function for each family that hashes a password as another system does, with costs that are low unless they
 * are given.
 */
export const hashers = {
  argon2id: (password: string) => argon2(password, { memoryCost: 1024, timeCost: 1, parallelism: 2 }),
  argon2i: (password: string) => argon2(password, { algorithm: 1, memoryCost: 1024, timeCost: 1, parallelism: 1 }),
  argon2d: (password: string) => argon2(password, { algorithm: 0, memoryCost: 1024, timeCost: 1, parallelism: 1 }),
  bcrypt: (password: string, cost = 4) => bcrypt(password, cost),
  'bcrypt of PHP': async (password: string, cost = 4) => (await bcrypt(password, cost)).replace('$2b$', '$2y$'),
  'bcrypt of old libraries': async (password: string, cost = 4) => (await bcrypt(password, cost)).replace('$2b$', '$2a$'),
  scrypt: async (password: string, logN = 4) => {
    const salt = randomBytes(16)
    return `$scrypt$ln=${logN},r=8,p=1$${base64(salt)}$${base64(scryptSync(password, salt, 64, { N: 2 ** logN, r: 8, p: 1 }))}`
  },
  'pbkdf2-sha1': async (password: string, iterations = 10) => pbkdf2('sha1', password, iterations, 20),
  'pbkdf2-sha256': async (password: string, iterations = 10) => pbkdf2('sha256', password, iterations, 32),
  'pbkdf2-sha512': async (password: string, iterations = 10) => pbkdf2('sha512', password, iterations, 64),
  'pbkdf2-sha256 of Keycloak': async (password: string, iterations = 10) => pbkdf2('sha256', password, iterations, 64),
  'Firebase scrypt': async (password: string, logN = 4) => {
    const salt = randomBytes(10)
    const key = scryptSync(password, Buffer.concat([salt, firebase.separator]), 32, { N: 2 ** logN, r: 8, p: 1 })
    const hash = createCipheriv('aes-256-ctr', key, Buffer.alloc(16)).update(firebase.signerKey)
    return `$firebase-scrypt$ln=${logN},r=8$${salt.toString('base64')}$${hash.toString('base64')}`
  },
} satisfies Record<string, (password: string, cost?: number) => Promise<string>>

function pbkdf2 (digest: string, password: string, iterations: number, bytes: number): string {
  const salt = randomBytes(16)
  return `$pbkdf2-${digest}$i=${iterations}$${base64(salt)}$${base64(pbkdf2Sync(password, salt, iterations, bytes, digest))}`
}
