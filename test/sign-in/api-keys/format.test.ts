import { randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import t from 'tap'
import { createApiKey, isApiKey, isWellFormed } from '../../../plugins/sign-in/api-keys/format.ts'

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

// As docs/api-keys.md tells scanners.
function toBase62 (value: bigint): string {
  return value < 62n ? ALPHABET[Number(value)]! : toBase62(value / 62n) + ALPHABET[Number(value % 62n)]
}

t.test('17.1 a key has a prefix, 256 random bits and a CRC-32, which scanners can verify', async (t) => {
  const keys = Array.from({ length: 200 }, createApiKey)
  t.equal(new Set(keys).size, 200)
  for (const key of keys) {
    const [, secret, checksum] = /^(usher_[0-9A-Za-z]{43})([0-9A-Za-z]{6})$/.exec(key)!
    if (checksum !== toBase62(BigInt(crc32(secret!))).padStart(6, '0')) t.fail(key)
    if (!isApiKey(key) || !isWellFormed(key)) t.fail(key)
  }
  const value = [...keys[0]!.slice(6, 49)].reduce((sum, digit) => sum * 62n + BigInt(ALPHABET.indexOf(digit)), 0n)
  t.ok(value < 2n ** 256n)
})

t.test('17.2 a text with one other character, or a random one, is no key', async (t) => {
  const key = createApiKey()
  for (let place = 6; place < key.length; place++) {
    const other = key[place] === 'a' ? 'b' : 'a'
    if (isWellFormed(key.slice(0, place) + other + key.slice(place + 1))) t.fail(`${place} of ${key}`)
  }
  for (const text of ['', 'usher_', key.slice(1), `${key}0`, `${key}\n`, ` ${key}`, key.replace('usher_', 'Usher_')]) {
    t.notOk(isWellFormed(text), JSON.stringify(text))
  }
  const random = () => `usher_${randomBytes(64).toString('base64').replaceAll(/[^0-9A-Za-z]/g, '').slice(0, 49)}`
  t.equal(Array.from({ length: 5000 }, random).filter(isWellFormed).length, 0)
})
