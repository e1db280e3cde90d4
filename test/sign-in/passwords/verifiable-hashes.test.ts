import { createCipheriv, createHash, pbkdf2Sync, scryptSync } from 'node:crypto'
import { hash as argon2 } from '@node-rs/argon2'
import { hash as bcrypt } from '@node-rs/bcrypt'
import t from 'tap'
import { checkHash } from '../../../plugins/sign-in/passwords/check-hash.ts'
import { IMPORT_LIMITS, LOGIN_LIMITS, parseHash, UnsupportedHash } from '../../../schema/sign-in/passwords/stored-hash.ts'

const PASSWORD = 'correct horse battery'
const BCRYPT_DIGITS = './ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const BASE64_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

const bytesOf = (length: number) => Buffer.alloc(length, createHash('sha256').update(`salt ${length}`).digest())
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64').replace(/=+$/, '')

/** A hash that some system may have stored. */
interface Stored { text: string, signerKey?: Buffer }

/** Returns a text with each value of the bits in a digit that belong to no byte. */
function withUnusedBits (text: string, at: number, digits: string, bits: number): string[] {
  const value = digits.indexOf(text[at]!)
  return Array.from(
    { length: 2 ** bits }, (_, unused) => text.slice(0, at) + digits[value | unused]! + text.slice(at + 1)
  )
}

/** Returns the spellings of a PHC string: padding, unused bits, the other base64, capital letters, leading zeros. */
function spellingsOf (text: string): string[] {
  const [head, salt, hash] = [text.split('$').slice(0, -2).join('$'), ...text.split('$').slice(-2)] as [string, string, string]
  const padded = (part: string) => part.padEnd(Math.ceil(part.length / 4) * 4, '=')
  const unused = (part: string) => {
    const bits = { 0: 0, 2: 4, 3: 2 }[part.length % 4]!
    return bits === 0 ? [part] : withUnusedBits(part, part.length - 1, BASE64_DIGITS, bits)
  }
  return [
    text,
    `${head}$${padded(salt)}$${padded(hash)}`,
    `${head}$${salt}==$${hash}=`,
    ...unused(salt).map((part) => `${head}$${part}$${hash}`),
    ...unused(hash).map((part) => `${head}$${salt}$${part}`),
    `${head}$${salt.replaceAll('+', '-').replaceAll('/', '_')}$${hash.replaceAll('+', '-').replaceAll('/', '_')}`,
    `${head}$${salt.replaceAll('+', '.')}$${hash.replaceAll('+', '.')}`,
    `${head}$${Buffer.from(salt, 'base64').toString('hex')}$${Buffer.from(hash, 'base64').toString('hex').toUpperCase()}`,
    text.replace(/=(\d)/g, '=0$1'),
    text.replace(/^\$[a-z0-9-]+/, (name) => name.toUpperCase()),
  ]
}

async function * bcryptHashes (): AsyncGenerator<Stored> {
  for (const [cost, salt] of [[3, 16], [4, 16], [5, 1], [5, 2], [14, 16]] as const) {
    const made = await bcrypt(PASSWORD, Math.max(4, cost), bytesOf(16).fill(salt))
    const text = made.replace(/^\$2b\$\d\d/, `$2b$${String(cost).padStart(2, '0')}`)
    const spellings = cost === 14
      ? [text]
      : ['2a', '2b', '2y', '2x'].flatMap((version) => {
          const versioned = text.replace('2b', version)
          return [
            ...withUnusedBits(versioned, 28, BCRYPT_DIGITS, 4), ...withUnusedBits(versioned, 59, BCRYPT_DIGITS, 2),
          ]
        })
    for (const spelling of spellings) yield { text: spelling }
  }
}

async function * argon2Hashes (): AsyncGenerator<Stored> {
  for (const algorithm of [0, 1, 2]) {
    for (const version of [0, 1]) {
      for (const [memoryCost, timeCost, parallelism, saltBytes, outputLen] of [
        [8, 1, 1, 8, 16], [16, 2, 2, 16, 32], [128, 1, 16, 48, 64], [1024, 3, 3, 11, 17], [64, 100, 1, 9, 33],
        [72, 1, 9, 16, 20], [8, 1, 1, 47, 63], [8, 1, 1, 16, 15], [8, 1, 1, 16, 65],
      ] as const) {
        const text = await argon2(PASSWORD, {
          algorithm, version, memoryCost, timeCost, parallelism, salt: bytesOf(saltBytes), outputLen,
        })
        const spellings = spellingsOf(text)
        // Before version 19, hashes did not name their version.
        if (version === 0) spellings.push(text.replace('$v=16', ''))
        for (const spelling of spellings) yield { text: spelling }
      }
    }
  }
  const large = await argon2(PASSWORD, { memoryCost: 256 * 1024, timeCost: 1, parallelism: 4, salt: bytesOf(16) })
  yield { text: large }
}

function * scryptHashes (): Generator<Stored> {
  for (const [logN, r, p, saltBytes, hashBytes] of [
    [1, 1, 1, 4, 16], [15, 1, 1, 16, 64], [4, 8, 1, 256, 128], [4, 1, 1024, 5, 17], [4, 1024, 1, 16, 63],
    [10, 8, 5, 22, 64],
    // These must be refused, or checked.
    [16, 1, 1, 16, 64], [17, 1, 1, 16, 64], [0, 8, 1, 16, 64],
  ] as const) {
    const salt = bytesOf(saltBytes)
    const N = 2 ** logN
    let hash: Buffer
    try {
      hash = scryptSync(PASSWORD, salt, hashBytes, { N, r, p, maxmem: 512 * 1024 * 1024 })
    } catch {
      // No implementation of RFC 7914 makes it, and yet it may be in a file.
      hash = bytesOf(hashBytes)
    }
    for (const text of spellingsOf(`$scrypt$ln=${logN},r=${r},p=${p}$${base64(salt)}$${base64(hash)}`)) yield { text }
  }
}

function * pbkdf2Hashes (): Generator<Stored> {
  for (const digest of ['sha1', 'sha256', 'sha512']) {
    for (const [iterations, saltBytes, hashBytes] of [
      [1, 4, 16], [1000, 16, 20], [999, 17, 32], [10, 256, 64], [3, 22, 128], [5, 5, 33],
    ] as const) {
      const salt = bytesOf(saltBytes)
      const hash = base64(pbkdf2Sync(PASSWORD, salt, iterations, hashBytes, digest))
      for (const length of ['', `,l=${hashBytes}`]) {
        for (const text of spellingsOf(`$pbkdf2-${digest}$i=${iterations}${length}$${base64(salt)}$${hash}`)) yield { text }
      }
    }
  }
}

function * firebaseHashes (): Generator<Stored> {
  for (const [logN, r, separatorBytes, keyBytes] of [
    [1, 1, 0, 16], [4, 8, 1, 64], [6, 2, 16, 65], [15, 1, 2, 128], [16, 1, 1, 64],
  ] as const) {
    const [salt, separator, signerKey] = [bytesOf(10), bytesOf(separatorBytes), bytesOf(keyBytes)]
    const costs = { N: 2 ** logN, r, p: 1, maxmem: 512 * 1024 * 1024 }
    let key: Buffer
    try {
      key = scryptSync(PASSWORD, Buffer.concat([salt, separator]), 32, costs)
    } catch {
      key = bytesOf(32)
    }
    const hash = createCipheriv('aes-256-ctr', key, Buffer.alloc(16)).update(signerKey)
    const end = separatorBytes === 0 ? '' : `,s=${base64(separator)}`
    for (const id of ['0123456789abcdef', '0123456789ABCDEF']) {
      const text = `$firebase-scrypt$ln=${logN},r=${r},k=${id}${end}$${base64(salt)}$${base64(hash)}`
      for (const spelling of spellingsOf(text)) yield { text: spelling, signerKey }
    }
  }
}

const families = {
  bcrypt: bcryptHashes, argon2: argon2Hashes, scrypt: scryptHashes, pbkdf2: pbkdf2Hashes, firebase: firebaseHashes,
}

for (const [name, generate] of Object.entries(families)) {
  t.test(`16.7 whatever an import accepts, a login verifies: ${name}`, async (t) => {
    const counted = { accepted: 0, refused: 0 }
    const checked = new Map<string, boolean>()
    for await (const { text, signerKey } of generate()) {
      let stored: string
      try {
        stored = parseHash(text, IMPORT_LIMITS).text
      } catch (error) {
        if (!(error instanceof UnsupportedHash) || !/^(has|must|needs|is) /.test(error.message)) t.fail(`${text}: ${error}`)
        counted.refused++
        continue
      }
      counted.accepted++
      // Many spellings are stored as one.
      if (!checked.has(stored)) {
        const isRight = await checkHash(parseHash(stored, LOGIN_LIMITS), Buffer.from(PASSWORD), signerKey)
          .catch((error) => { t.fail(`${text}: ${error}`) })
        checked.set(stored, isRight === true)
      }
      if (!checked.get(stored)) t.fail(`${text} is accepted, and no password has it`)
    }
    t.comment(`${counted.accepted} accepted, ${counted.refused} refused, ${checked.size} checked`)
    t.ok(counted.accepted > checked.size && counted.refused > 0 && checked.size > 2)
  })
}
