import t from 'tap'
import { foldCode } from '../../../schema/strings/code.ts'
import { codeOf, createTotpSecret, findStep, toBase32, totpUri } from '../../../plugins/sign-in/totp/codes.ts'

// RFC 6238, appendix B: the last six of the eight digits.
const SECRET = toBase32(Buffer.from('12345678901234567890'))
const vectors = [
  [59, '287082'], [1111111109, '081804'], [1111111111, '050471'], [1234567890, '005924'], [2000000000, '279037'],
  [20000000000, '353130'],
] as const

const stepOf = (seconds: number) => Math.floor(seconds / 30)

t.test('16.4 codes are those of RFC 6238', async (t) => {
  for (const [seconds, code] of vectors) t.equal(codeOf(SECRET, stepOf(seconds)), code, `${seconds}`)
})

t.test('16.4 a code is accepted within its step, the one before and the one after', async (t) => {
  const code = codeOf(SECRET, 1000)
  const at = (step: number, part = 0) => findStep(SECRET, code, (step + part) * 30_000, 0)
  t.same(
    [998.999, 999, 1000, 1001.999, 1002].map((step) => at(Math.floor(step), step % 1)),
    [undefined, 1000, 1000, 1000, undefined]
  )
})

t.test('16.4 no code of an accepted step or an earlier one is accepted again', async (t) => {
  const now = 1000 * 30_000
  t.equal(findStep(SECRET, codeOf(SECRET, 1000), now, 999), 1000)
  t.equal(findStep(SECRET, codeOf(SECRET, 1000), now, 1000), undefined)
  t.equal(findStep(SECRET, codeOf(SECRET, 999), now, 1000), undefined)
  t.equal(findStep(SECRET, codeOf(SECRET, 1001), now, 1000), 1001)
})

t.test('16.4 a code may be typed in groups, and whatever else is typed is no code', async (t) => {
  const code = codeOf(SECRET, 1000)
  const accepts = (given: string) => findStep(SECRET, given, 1000 * 30_000, 0) === 1000
  for (const given of [`${code.slice(0, 3)} ${code.slice(3)}`, `${code.slice(0, 3)}-${code.slice(3)}`, ` ${code} `]) {
    t.ok(accepts(given), given)
  }
  const wrong = [
    '', code.slice(1), `0${code}`, `${code}0`, code.replace(/./, 'a'), '１２３４５６', '12345\u{1D7D8}', `${code}\u0301`,
  ]
  for (const given of wrong) t.notOk(accepts(given), given)
})

t.test('16.4 a code may be typed in full width, in the digits of another script, and with marks of direction', async (t) => {
  const code = codeOf(SECRET, 1000)
  const writeFrom = (zero: number) => Array.from(code, (digit) => String.fromCodePoint(zero + Number(digit))).join('')
  // Arabic-Indic, Persian, Devanagari, Thai, full width, mathematical monospace, and one between others.
  for (const zero of [0x660, 0x6f0, 0x966, 0xe50, 0xff10, 0x1d7f6, 0x1d7e2]) {
    const written = writeFrom(zero)
    const grouped = `\u200f${written.slice(0, written.length / 2)}\u3000${written.slice(written.length / 2)}\u200e`
    for (const given of [written, grouped]) t.equal(findStep(SECRET, given, 1000 * 30_000, 0), 1000, given)
  }
  t.equal(findStep(SECRET, writeFrom(0x2460), 1000 * 30_000, 0), undefined, 'circled numbers are no digits')
})

t.test('16.4 every digit of every script is the digit that it stands for', async (t) => {
  for (const numberingSystem of Intl.supportedValuesOf('numberingSystem')) {
    const { format } = new Intl.NumberFormat('en', { numberingSystem, useGrouping: false })
    const digits = Array.from({ length: 10 }, (_, digit) => format(digit))
    if (!digits.every((digit) => /^\p{Nd}$/u.test(digit))) continue
    t.equal(foldCode(digits.join('')), '0123456789', numberingSystem)
  }
})

t.test('16.4 secrets have 160 bits, and each is another one', async (t) => {
  const secrets = Array.from({ length: 100 }, createTotpSecret)
  for (const secret of secrets) t.match(secret, /^[A-Z2-7]{32}$/)
  t.equal(new Set(secrets).size, 100)
})

t.test('16.4 the address for apps keeps whatever the name of the product and the account are', async (t) => {
  const issuer = 'Büro & Co 100% ? #1'
  const uri = new URL(totpUri({ secret: SECRET, issuer, account: "o'ada+1@example.com" }))
  t.same(
    [uri.protocol, uri.host, decodeURIComponent(uri.pathname)], ['otpauth:', 'totp', `/${issuer}:o'ada+1@example.com`]
  )
  const { searchParams: parameters } = uri
  t.strictSame(Object.fromEntries(parameters), { secret: SECRET, issuer, algorithm: 'SHA1', digits: '6', period: '30' })
})

t.test('16.4 the address for apps has one colon in its label, whatever the names have', async (t) => {
  const read = (issuer: string, account: string) => {
    const { pathname, searchParams } = new URL(totpUri({ secret: SECRET, issuer, account }))
    return [decodeURIComponent(pathname), searchParams.get('issuer')]
  }
  t.same(read('Acme: Cloud', 'ada@example.com'), ['/Acme Cloud:ada@example.com', 'Acme Cloud'])
  t.same(read('::a:b:', '"a:b"@example.com'), ['/a b:"a b"@example.com', 'a b'])
  t.same(read(':', 'ada@example.com'), ['/ada@example.com', null])
})
