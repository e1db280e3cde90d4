import type { Attack } from '../context.ts'
import { ask } from '../exchange.ts'

const NAME = 'logins'
const OWN_NETWORKS = 200

/** Guessed passwords from many networks, which must get 401 or 429 and never a token. */
export const logins: Attack = {
  name: NAME,
  weight: 0.5,
  async run (lane) {
    const { random, cast: { world }, findings } = lane
    const account = random.pick([world.admin, ...world.members])
    const email = random.chance(0.5) ? account.email : `nobody-${random.below(OWN_NETWORKS)}@example.org`
    const password = random.pick([
      'password', `guess-${random.word()}`, account.password.toUpperCase(), `${account.password} `, '\0', '',
    ])
    const reply = await ask(lane, NAME, {
      method: 'POST',
      path: '/api/auth/login',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email, password }),
    })
    if (reply && (reply.status < 400 || reply.body.includes('"token"'))) {
      findings.violation('authorization', NAME, `logged in as ${email} by ${password}`)
    }
  },
}
