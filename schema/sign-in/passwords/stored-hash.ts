/**
 * The hash of a password as it is stored, in one of the formats that can be checked: PHC strings
 * (https://github.com/P-H-C/phc-string-format) of argon2, scrypt and PBKDF2, bcrypt's own format, and Firebase's
 * modification of scrypt.
 */
export type StoredHash = Argon2Hash | BcryptHash | ScryptHash | Pbkdf2Hash

interface Format {
  /** The hash in its canonical form, which is stored: base64 without padding, and parameters in a fixed order. */
  readonly text: string
  /** What `text` begins with, before the salt: the algorithm and everything that determines how long a check takes. */
  readonly kind: string
}

export interface Argon2Hash extends Format {
  readonly family: 'argon2'
  readonly variant: 'argon2id' | 'argon2i' | 'argon2d'
  readonly version: number
  readonly memoryKiB: number
  readonly passes: number
  readonly lanes: number
}

export interface BcryptHash extends Format {
  readonly family: 'bcrypt'
  readonly cost: number
}

export interface ScryptHash extends Format {
  readonly family: 'scrypt'
  readonly logN: number
  readonly blockSize: number
  readonly parallelism: number
  readonly salt: Buffer
  readonly hash: Buffer
  /** What only Firebase's modification has. */
  readonly firebase?: { readonly keyId: string, readonly separator: Buffer }
}

export interface Pbkdf2Hash extends Format {
  readonly family: 'pbkdf2'
  readonly digest: Digest
  readonly iterations: number
  readonly salt: Buffer
  readonly hash: Buffer
}

const DIGEST_BYTES = { sha1: 20, sha256: 32, sha512: 64 } as const

type Digest = keyof typeof DIGEST_BYTES

/** The maximum length of a hash, in characters. */
export const MAX_HASH_LENGTH = 1024

/**
 * The maximum costs of a check, about a second each. A higher one would let a single login occupy a core or the memory
 * of the machine.
 */
export interface HashLimits {
  readonly argon2: { readonly memoryKiB: number, readonly passes: number, readonly memoryTimesPasses: number }
}

const MIB = 1024 * 1024
const MAX_LANES = 16
const MAX_BCRYPT_COST = 14
const MIN_BCRYPT_COST = 4
const MAX_SCRYPT_BYTES = 256 * MIB
const MAX_PBKDF2_ITERATIONS = 2_000_000

/** What an import accepts. */
export const IMPORT_LIMITS: HashLimits =
  { argon2: { memoryKiB: 256 * 1024, passes: 100, memoryTimesPasses: 1024 * 1024 } }

/** What a login checks: also whatever the option `passwordHash` may ever have been. */
export const LOGIN_LIMITS: HashLimits =
  { argon2: { memoryKiB: 1024 * 1024, passes: 100, memoryTimesPasses: 100 * 1024 * 1024 } }

/** A hash cannot be checked. The message says why, as the end of a sentence about it. */
export class UnsupportedHash extends Error {}

/** A project's parameters of Firebase, which its hashes need and do not contain. */
export interface FirebaseParameters { readonly keyId: string, readonly separator: Buffer }

// The digits of bcrypt's base64, in their order.
const BCRYPT_DIGITS = './ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/**
 * Reads the hash of a password. Throws `UnsupportedHash` if the format is unknown or broken, if the hash has no salt,
 * or if a check would cost more than the limits.
 * @param firebase the parameters for hashes of Firebase that do not name theirs
 */
export function parseHash (text: string, limits: HashLimits, firebase?: FirebaseParameters): StoredHash {
  if (text.length > MAX_HASH_LENGTH) throw new UnsupportedHash(`is longer than ${MAX_HASH_LENGTH} characters`)
  const [, name = ''] = /^\$([a-z0-9-]{1,32})\$/.exec(text) ?? []
  switch (name) {
    case '2a': case '2b': case '2y': return parseBcrypt(text)
    case 'argon2id': case 'argon2i': case 'argon2d': return parseArgon2(name, text, limits)
    case 'scrypt': return parseScrypt(text)
    case 'firebase-scrypt': return parseFirebase(text, firebase)
    case 'pbkdf2-sha1': case 'pbkdf2-sha256': case 'pbkdf2-sha512': return parsePbkdf2(name, text)
    default: throw new UnsupportedHash(
      'has an unknown format: it must be a PHC string of argon2, bcrypt, scrypt, PBKDF2 or firebase-scrypt'
    )
  }
}

function parseBcrypt (text: string): BcryptHash {
  const [, cost, salt, hash] = /^\$2[aby]\$(\d\d)\$([./A-Za-z0-9]{22})([./A-Za-z0-9]{31})$/.exec(text) ?? []
  if (hash === undefined) throw malformed('$2b$<cost>$<salt and hash>')
  within('cost', Number(cost), MIN_BCRYPT_COST, MAX_BCRYPT_COST)
  // For text in UTF-8, the three versions are the same algorithm.
  const kind = `$2b$${cost}$`
  // 16 and 23 bytes. Some libraries have set bits of the last digit that belong to none, which others do not accept.
  return { family: 'bcrypt', cost: Number(cost), kind, text: `${kind}${withoutBits(salt!, 4)}${withoutBits(hash, 2)}` }
}

// Returns digits of bcrypt without the last bits of the last one.
function withoutBits (digits: string, bits: number): string {
  const last = BCRYPT_DIGITS.indexOf(digits.at(-1)!)
  return digits.slice(0, -1) + BCRYPT_DIGITS[(last >> bits) << bits]!
}

function parseArgon2 (variant: Argon2Hash['variant'], text: string, { argon2: limits }: HashLimits): Argon2Hash {
  const [, , version = '16', memory, time, lanes, salt, hash] =
    /^\$(argon2id?|argon2d)\$(?:v=(\d{1,3})\$)?m=(\d{1,10}),t=(\d{1,10}),p=(\d{1,10})\$([^$]+)\$([^$]+)$/.exec(text) ?? []
  if (hash === undefined) throw malformed(`$${variant}$v=19$m=<KiB>,t=<passes>,p=<lanes>$<salt>$<hash>`)
  if (version !== '16' && version !== '19') throw new UnsupportedHash('has an unknown version of argon2')
  const [memoryKiB, passes] = [Number(memory), Number(time)]
  within('p', Number(lanes), 1, MAX_LANES)
  within('m', memoryKiB, 8 * Number(lanes), limits.memoryKiB)
  within('t', passes, 1, limits.passes)
  within('m times t', memoryKiB * passes, 8, limits.memoryTimesPasses)
  const kind = `$${variant}$v=${version}$m=${memoryKiB},t=${passes},p=${Number(lanes)}$`
  return {
    family: 'argon2',
    variant,
    version: Number(version),
    memoryKiB,
    passes,
    lanes: Number(lanes),
    kind,
    text: `${kind}${toBase64(fromBase64('salt', salt!, 8, 48))}$${toBase64(fromBase64('hash', hash, 16, 64))}`,
  }
}

function parseScrypt (text: string): ScryptHash {
  const [, logN, blockSize, parallelism, salt, hash] =
    /^\$scrypt\$ln=(\d{1,3}),r=(\d{1,10}),p=(\d{1,10})\$([^$]+)\$([^$]+)$/.exec(text) ?? []
  if (hash === undefined) throw malformed('$scrypt$ln=<log2 N>,r=<block size>,p=<parallelism>$<salt>$<hash>')
  const costs = scryptCosts(Number(logN), Number(blockSize), Number(parallelism))
  const kind = `$scrypt$ln=${costs.logN},r=${costs.blockSize},p=${costs.parallelism}$`
  return { family: 'scrypt', ...costs, ...saltAndHash(kind, salt!, hash, 16, 128) }
}

function parseFirebase (text: string, given: FirebaseParameters | undefined): ScryptHash {
  const [, logN, blockSize, id, end, salt, hash] =
    /^\$firebase-scrypt\$ln=(\d{1,3}),r=(\d{1,10})(?:,k=([0-9a-f]{16}))?(?:,s=([^,$]*))?\$([^$]+)\$([^$]+)$/.exec(text) ?? []
  if (hash === undefined) {
    throw malformed('$firebase-scrypt$ln=<mem_cost>,r=<rounds>$<salt>$<hash>, the last two in base64 as Firebase exports them')
  }
  const keyId = id ?? given?.keyId
  // A hash that names its key names its separator as well, unless that is empty.
  const separator = end !== undefined ? fromBase64('s', end, 0, 16) : id === undefined ? given?.separator : Buffer.alloc(0)
  if (keyId === undefined || separator === undefined) {
    throw new UnsupportedHash('needs the hash parameters of its Firebase project: give them with --firebase-config')
  }
  const costs = scryptCosts(Number(logN), Number(blockSize), 1)
  const kind = `$firebase-scrypt$ln=${costs.logN},r=${costs.blockSize},k=${keyId},s=${toBase64(separator)}$`
  return {
    family: 'scrypt', ...costs, ...saltAndHash(kind, salt!, hash, 16, 128), firebase: { keyId, separator },
  }
}

function scryptCosts (logN: number, blockSize: number, parallelism: number) {
  within('r', blockSize, 1, 1024)
  // RFC 7914, 2: N is less than 2 to the power of 16 times r.
  within('ln', logN, 1, Math.min(24, 16 * blockSize - 1))
  within('p', parallelism, 1, 1024)
  within('the memory (128 times N times r times p)', 128 * 2 ** logN * blockSize * parallelism, 0, MAX_SCRYPT_BYTES)
  return { logN, blockSize, parallelism }
}

function parsePbkdf2 (name: string, text: string): Pbkdf2Hash {
  const digest = name.slice('pbkdf2-'.length) as Digest
  const [, , given, length, salt, hash] =
    /^\$(pbkdf2-sha\d+)\$i=(\d{1,10})(?:,l=(\d{1,3}))?\$([^$]+)\$([^$]+)$/.exec(text) ?? []
  if (hash === undefined) throw malformed(`$${name}$i=<iterations>$<salt>$<hash>`)
  const iterations = Number(given)
  const bytes = fromBase64('hash', hash, 16, 128)
  if (length !== undefined && Number(length) !== bytes.length) {
    throw new UnsupportedHash('has a length (l) that is not that of the hash')
  }
  within('i', iterations, 1, MAX_PBKDF2_ITERATIONS)
  within('i times the blocks of the hash', iterations * blocksOf({ digest, hash: bytes }), 1, MAX_PBKDF2_ITERATIONS)
  const kind = `$${name}$i=${iterations}${bytes.length === DIGEST_BYTES[digest] ? '' : `,l=${bytes.length}`}$`
  return { family: 'pbkdf2', digest, iterations, ...saltAndHash(kind, salt!, hash, 16, 128) }
}

/** Returns how often PBKDF2 repeats its iterations for a hash of this length (RFC 8018 5.2). */
export const blocksOf = ({ digest, hash }: Pick<Pbkdf2Hash, 'digest' | 'hash'>): number =>
  Math.ceil(hash.length / DIGEST_BYTES[digest])

function saltAndHash (kind: string, salt: string, hash: string, min: number, max: number) {
  // A hash without a salt, or with a short one that many users share, would be no secret.
  const bytes = { salt: fromBase64('salt', salt, 4, 256), hash: fromBase64('hash', hash, min, max) }
  return { kind, ...bytes, text: `${kind}${toBase64(bytes.salt)}$${toBase64(bytes.hash)}` }
}

const malformed = (form: string) => new UnsupportedHash(`must have the form ${form}`)

function within (name: string, value: number, min: number, max: number): void {
  if (value < min || value > max) throw new UnsupportedHash(`has a cost that is not allowed: ${name} must be from ${min} to ${max}`)
}

// Digits of hexadecimal are digits of base64 as well, and mean something else. So many of them are no accident.
const HEXADECIMAL = /^(?=.{32})(?=.*\d)(?:[0-9a-f]{2}|[0-9A-F]{2})+=*$/

function fromBase64 (name: string, text: string, min: number, max: number): Buffer {
  if (HEXADECIMAL.test(text)) throw new UnsupportedHash(`has a ${name} in hexadecimal: it must be in base64`)
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) throw new UnsupportedHash(`has a ${name} that is not base64`)
  const bytes = Buffer.from(text, 'base64')
  if (toBase64(bytes) !== text.replace(/=+$/, '')) throw new UnsupportedHash(`has a ${name} that is not base64`)
  if (bytes.length < min || bytes.length > max) {
    throw new UnsupportedHash(`has a ${name} of ${bytes.length} bytes: it must have from ${min} to ${max}`)
  }
  return bytes
}

const toBase64 = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '')

/**
 * Returns a hash of a kind that no password has, to be checked in place of one that does not exist. Throws
 * `UnsupportedHash` if there is no such kind.
 */
export function impossibleHash (kind: string): StoredHash {
  const length = Number(/,l=(\d+)\$$/.exec(kind)?.[1] ?? DIGEST_BYTES[/^\$pbkdf2-(\w+)/.exec(kind)?.[1] as Digest] ?? 32)
  const hash = toBase64(Buffer.alloc(length))
  return parseHash(kind.startsWith('$2') ? `${kind}${'.'.repeat(53)}` : `${kind}${'A'.repeat(22)}$${hash}`, LOGIN_LIMITS)
}

/**
 * The work of checking a hash, in units of its group. A check of so many units takes as long as checks of fewer that
 * add up to them.
 */
export interface Work { readonly group: string, readonly units: number }

/** Returns the work of checking a hash. */
export function workOf (hash: StoredHash): Work {
  switch (hash.family) {
    case 'bcrypt': return { group: 'bcrypt', units: 2 ** hash.cost }
    case 'pbkdf2': return { group: `pbkdf2-${hash.digest}`, units: hash.iterations * blocksOf(hash) }
    case 'scrypt': return { group: `scrypt ${hash.logN} ${hash.blockSize} ${hash.parallelism}`, units: 1 }
    case 'argon2': return { group: hash.kind, units: 1 }
  }
}
