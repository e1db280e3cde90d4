import t from 'tap'
import { bcryptCosts, checkHash, remainingWork } from '../../../plugins/sign-in/passwords/check-hash.ts'
import {
  impossibleHash, IMPORT_LIMITS, LOGIN_LIMITS, parseHash, UnsupportedHash, workOf,
} from '../../../schema/sign-in/passwords/stored-hash.ts'

const base64 = (text: string, encoding: 'utf8' | 'hex' = 'utf8') =>
  Buffer.from(text, encoding).toString('base64').replace(/=+$/, '')

// Published, or computed by other implementations: OpenSSL's argon2, and crypt(3) of libxcrypt.
const vectors: Record<string, { password: string, hash: string, signerKey?: Buffer }> = {
  'argon2i of OpenSSL': {
    password: 'password', hash: '$argon2i$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$wWKIMhR9lyDFvRz9YTZweHKfbftvj+qf+YFY4NeBbtA',
  },
  'argon2d of OpenSSL': {
    password: 'password', hash: '$argon2d$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$lV5dWxY6G2C7o1/DbQSWR0+6T2tZrVNihmbwf7L5Pq8',
  },
  'argon2id of OpenSSL': {
    password: 'password', hash: '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc',
  },
  'argon2i of version 16 (reference implementation)': {
    password: 'password', hash: '$argon2i$m=65536,t=2,p=1$c29tZXNhbHQ$9sTbSlTio3Biev89thdrlKKiCaYsjjYVJxGAL3swxpQ',
  },
  'bcrypt 2b of libxcrypt': {
    password: 'correct horse battery', hash: '$2b$05$abcdefghijklmnopqrstuuD3mHdCr44zlIZ.VZCaYRpfQhXMYnEo.',
  },
  'bcrypt 2y of libxcrypt': {
    password: 'correct horse battery', hash: '$2y$05$abcdefghijklmnopqrstuuD3mHdCr44zlIZ.VZCaYRpfQhXMYnEo.',
  },
  'bcrypt 2a of libxcrypt, in UTF-8': {
    password: 'pässwörd 山田', hash: '$2a$05$abcdefghijklmnopqrstuu.iN9J6F.NDR4xa/zoVzJ10CriLTBwG6',
  },
  'bcrypt of 80 bytes': {
    password: 'x'.repeat(80), hash: '$2y$05$abcdefghijklmnopqrstuujf8SX2ahXLwp9w/B.Y5XdysS6yR576q',
  },
  'scrypt of RFC 7914': {
    password: 'pleaseletmein',
    hash: `$scrypt$ln=14,r=8,p=1$${base64('SodiumChloride')}$${base64('7023bdcb3afd7348461c06cd81fd38ebfda8fbba904f8e3ea9b543f6545da1f2' +
      'd5432955613f0fcf62d49705242a9af9e61e85dc0d651e40dfcf017b45575887', 'hex')}`,
  },
  'PBKDF2 of RFC 6070, of two blocks': {
    password: 'passwordPASSWORDpassword',
    hash: `$pbkdf2-sha1$i=4096$${base64('saltSALTsaltSALTsaltSALTsaltSALTsalt')}$${base64('3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038', 'hex')}`,
  },
  'scrypt of Firebase (github.com/firebase/scrypt)': {
    password: 'user1password',
    hash: '$firebase-scrypt$ln=14,r=8,k=0123456789abcdef,s=Bw$42xEC+ixf3L2lw==' +
      '$lSrfV15cpx95/sZS2W9c9Kp6i/LVgQNDNC/qzrCnh1SAyZvqmZqAjTdn3aoItz+VHjoZilo78198JAdRuid5lQ==',
    signerKey: Buffer.from(
      'jxspr8Ki0RYycVU8zykbdLGjFQ3McFUH0uiiTvC8pVMXAn210wjLNmdZJzxUECKbm0QsEmYUSDzZvpjeJ9WmXA==', 'base64'
    ),
  },
}

for (const [name, { password, hash, signerKey }] of Object.entries(vectors)) {
  t.test(`16.7 a password has its hash: ${name}`, async (t) => {
    const parsed = parseHash(hash, IMPORT_LIMITS)
    t.equal(await checkHash(parsed, Buffer.from(password), signerKey), true)
    t.equal(await checkHash(parsed, Buffer.from(`y${password}`), signerKey), false)
    t.equal(parseHash(parsed.text, LOGIN_LIMITS).text, parsed.text, 'what is stored is canonical')
    t.ok(parsed.text.startsWith(parsed.kind))
    const impossible = impossibleHash(parsed.kind)
    t.strictSame([impossible.kind, workOf(impossible)], [parsed.kind, workOf(parsed)])
    t.equal(await checkHash(impossible, Buffer.from(password), signerKey), false)
  })
}

t.test('16.7 bcrypt looks at 72 bytes of a password, as the other system did', async (t) => {
  const parsed = parseHash(vectors['bcrypt of 80 bytes']!.hash, IMPORT_LIMITS)
  for (const length of [71, 72, 73, 80, 1024]) {
    t.equal(await checkHash(parsed, Buffer.from('x'.repeat(length))), length >= 72, `${length}`)
  }
  // The 72 bytes may end within a character.
  t.equal(await checkHash(parsed, Buffer.from(`${'x'.repeat(71)}ä`)), false)
})

const salt = base64('0123456789abcdef')
const of = (bytes: number) => base64('x'.repeat(bytes))

t.test('16.7 a hash that is too costly, unsalted, malformed or unknown is refused with a reason', async (t) => {
  const wrong: Record<string, RegExp> = {
    '': /unknown format/,
    x: /unknown format/,
    '5f4dcc3b5aa765d61d8327deb882cf99': /unknown format/,
    $1$salt$hash: /unknown format/,
    sha1$salt$hash: /unknown format/,
    [`$2x$05$${'a'.repeat(53)}`]: /unknown format/,
    [`$2$05$${'a'.repeat(53)}`]: /unknown format/,
    [`$2b$31$${'a'.repeat(53)}`]: /cost must be from 4 to 14/,
    [`$2b$15$${'a'.repeat(53)}`]: /cost must be from 4 to 14/,
    [`$2b$03$${'a'.repeat(53)}`]: /cost must be from 4 to 14/,
    [`$2b$+5$${'a'.repeat(53)}`]: /must have the form/,
    [`$2b$05$${'a'.repeat(52)}`]: /must have the form/,
    [`$2b$05$${'a'.repeat(53)}\0`]: /must have the form/,
    [`$argon2id$v=19$m=4194304,t=1,p=1$${salt}$${of(32)}`]: /m must be from 8 to 262144/,
    [`$argon2id$v=19$m=262144,t=100,p=1$${salt}$${of(32)}`]: /m times t must be from 8 to 1048576/,
    [`$argon2id$v=19$m=1024,t=101,p=1$${salt}$${of(32)}`]: /t must be/,
    [`$argon2id$v=19$m=1024,t=0,p=1$${salt}$${of(32)}`]: /t must be/,
    [`$argon2id$v=19$m=1024,t=1,p=17$${salt}$${of(32)}`]: /p must be/,
    [`$argon2id$v=19$m=8,t=1,p=2$${salt}$${of(32)}`]: /m must be from 16/,
    [`$argon2id$v=18$m=1024,t=1,p=1$${salt}$${of(32)}`]: /unknown version/,
    [`$argon2id$v=19$m=1024,t=1,p=1$${of(7)}$${of(32)}`]: /salt of 7 bytes/,
    [`$argon2id$v=19$m=1024,t=1,p=1$${salt}$${of(15)}`]: /hash of 15 bytes/,
    [`$argon2id$v=19$m=1024,t=1,p=1,data=AAAA$${salt}$${of(32)}`]: /must have the form/,
    [`$scrypt$ln=30,r=8,p=1$${salt}$${of(32)}`]: /ln must be/,
    [`$scrypt$ln=18,r=9,p=1$${salt}$${of(32)}`]: /the memory .* must be/,
    [`$scrypt$ln=14,r=8,p=1024$${salt}$${of(32)}`]: /the memory .* must be/,
    [`$scrypt$ln=14,r=8,p=0$${salt}$${of(32)}`]: /p must be/,
    [`$scrypt$ln=14,r=8,p=1$$${of(32)}`]: /must have the form/,
    [`$scrypt$ln=14,r=8,p=1$${of(3)}$${of(32)}`]: /salt of 3 bytes/,
    [`$scrypt$ln=14,r=8,p=1$${salt}$${of(8)}`]: /hash of 8 bytes/,
    [`$pbkdf2-sha256$i=1000000000$${salt}$${of(32)}`]: /i must be/,
    [`$pbkdf2-sha256$i=2000000$${salt}$${of(64)}`]: /i times the blocks/,
    [`$pbkdf2-sha256$i=0$${salt}$${of(32)}`]: /i must be/,
    [`$pbkdf2-sha256$i=10,l=33$${salt}$${of(32)}`]: /a length \(l\)/,
    [`$pbkdf2-sha256$i=10$${'.'.repeat(22)}$${of(32)}`]: /salt that is not base64/,
    [`$pbkdf2-sha256$i=10$${salt}$AAAAAAAAAAAAAAAAAAAAAB`]: /hash that is not base64/,
    [`$pbkdf2-md5$i=10$${salt}$${of(32)}`]: /unknown format/,
    [`$firebase-scrypt$ln=14,r=8$${salt}$${of(64)}`]: /needs the hash parameters/,
    [`$firebase-scrypt$ln=30,r=8,k=0123456789abcdef$${salt}$${of(64)}`]: /ln must be/,
    [`$scrypt$ln=14,r=8,p=1$${'A'.repeat(1100)}$${of(32)}`]: /longer than 1024/,
  }
  for (const [hash, message] of Object.entries(wrong)) t.throws(() => parseHash(hash, IMPORT_LIMITS), { message }, hash)
  t.ok(parseHash(`$argon2id$v=19$m=1048576,t=100,p=1$${salt}$${of(32)}`, LOGIN_LIMITS), 'what the option may be')
})

t.test('16.7 whatever comes as a hash is refused with a sentence, or read in the same form again', async (t) => {
  const samples = Object.values(vectors).map(({ hash }) => hash)
  // A generator of its own, so that a failure can be repeated.
  let state = 1
  const random = (below: number) => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9 | 0
    return (state >>> 0) % below
  }
  const signs = ['$', ',', '=', '0', '9', '31', '999999999', 'A', '\0', '\n', '-', '+', 'v=', 'é', '\ud800', '{}', '..']
  let accepted = 0
  for (let round = 0; round < 20_000; round++) {
    let text = samples[random(samples.length)]!
    for (let change = 0; change <= random(3); change++) {
      const [at, length] = [random(text.length + 1), random(4)]
      text = text.slice(0, at) + (random(2) ? signs[random(signs.length)]! : '') + text.slice(at + length)
    }
    try {
      const { text: stored, kind } = parseHash(text, IMPORT_LIMITS)
      accepted++
      if (parseHash(stored, IMPORT_LIMITS).text !== stored || impossibleHash(kind).kind !== kind) t.fail(text)
      if (!/^[\x21-\x7e]+$/.test(stored)) t.fail(text)
    } catch (error) {
      if (!(error instanceof UnsupportedHash)) t.fail(`${JSON.stringify(text)}: ${error}`)
    }
  }
  t.ok(accepted > 100 && accepted < 15_000, `${accepted} accepted`)
})

t.test('16.7 every failed login takes the same work, whatever hash it was checked against', async (t) => {
  const own = '$argon2id$v=19$m=19456,t=2,p=1$'
  const kinds = [
    own, '$2b$04$', '$2b$10$', '$2b$12$', '$pbkdf2-sha256$i=1000$', '$pbkdf2-sha256$i=600,l=64$', '$pbkdf2-sha512$i=5$',
    '$scrypt$ln=14,r=8,p=1$', '$firebase-scrypt$ln=14,r=8,k=0123456789abcdef,s=Bw$', '$argon2id$v=19$m=65536,t=3,p=4$',
  ]
  const total = (checked: string) => {
    const done = workOf(impossibleHash(checked))
    const sums = new Map([[done.group, done.units]])
    for (const { group, units } of remainingWork(kinds, done)) sums.set(group, (sums.get(group) ?? 0) + units)
    return Object.fromEntries([...sums].sort())
  }
  const expected = {
    [own]: 1,
    '$argon2id$v=19$m=65536,t=3,p=4$': 1,
    bcrypt: 4096,
    'pbkdf2-sha256': 1200,
    'pbkdf2-sha512': 5,
    'scrypt 14 8 1': 1,
  }
  for (const kind of kinds) t.strictSame(total(kind), expected, kind)
  t.strictSame(remainingWork([own], workOf(impossibleHash(own))), [], 'nothing is added where nothing was imported')
  t.strictSame(bcryptCosts(2 ** 12), [12])
  t.strictSame(bcryptCosts(2 ** 12 - 2 ** 10), [10, 11])
})
