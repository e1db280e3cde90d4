// What pages say about a new password while it is typed.
import t from 'tap'
import { isCommonPassword, mostCommonPasswords } from '../../../schema/sign-in/passwords/common-passwords.ts'
import { passwordStrength } from '../../../schema/sign-in/passwords/strength.ts'

const common = new Set(mostCommonPasswords(1000))
const personal = ['Ada Lovelace', 'ada.lovelace@example.com']
const strengthOf = (password: string) => passwordStrength(password, { personal, common })

t.test('15.2 a password that the service rejects has a problem, and no strength', async (t) => {
  t.strictSame(strengthOf(''), { level: 0, problem: 'strengthShort', missing: 8 })
  t.strictSame(strengthOf('1234567'), { level: 0, problem: 'strengthShort', missing: 1 })
  t.strictSame(strengthOf('😀'.repeat(7)), { level: 0, problem: 'strengthShort', missing: 1 }, 'characters, not code units')
  t.strictSame(strengthOf('e\u0301'.repeat(7)), { level: 0, problem: 'strengthShort', missing: 1 }, 'as they are hashed')
  t.strictSame(strengthOf('x'.repeat(257)), { level: 0, problem: 'longPassword' })
  for (const word of [...personal, 'ADA LOVELACE', 'ada.lovelace']) {
    t.strictSame(strengthOf(word), { level: 0, problem: 'personalPassword' }, word)
  }
  t.equal(common.size, 1000)
  for (const word of common) {
    t.ok(isCommonPassword(word), word)
    t.strictSame(strengthOf(word.toUpperCase()).problem, 'commonPassword', word)
  }
})

t.test('15.2 a longer password with more different characters is stronger, and runs add nothing', async (t) => {
  const levels: [string, number][] = [
    ['aaaaaaaaaaaaaaaa', 1], ['abcdefghijklmnop', 1], ['1234567890123456', 1], ['football!1', 1], ['Lovelace.ada', 1],
    ['tr0ub4dor', 2], ['kq7!xw2p', 2], ['quiet lantern', 3], ['quiet lantern river', 4], ['zF4$kq7!xw2pLm', 4],
  ]
  for (const [password, level] of levels) t.strictSame(strengthOf(password), { level }, password)
})
