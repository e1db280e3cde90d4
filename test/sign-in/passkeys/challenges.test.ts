import t, { type Test } from 'tap'
import { createChallenges, type Purpose } from '../../../plugins/sign-in/passkeys/challenges.ts'
import { createSigningKeys } from '../../../plugins/access/signing-keys.ts'
import { CEREMONY_SECONDS } from '../../../schema/sign-in/passkeys.ts'
import type { SigningAlgorithm } from '../../../schema/options/signing-algorithm.ts'
import { openCore } from '../../helpers/core.ts'

const BINDING = 'session'

async function open (t: Test, signingAlgorithm: SigningAlgorithm = 'EdDSA', now = { value: 1_800_000_000_000 }) {
  const { app, core } = await openCore(t, { signingAlgorithm })
  const signingKeys = await createSigningKeys(core)
  await app.ready()
  const challenges = createChallenges({
    database: { ...core.database, clock: { ...core.database.clock, now: () => now.value } }, signingKeys,
  })
  return { challenges, now }
}

for (const algorithm of ['EdDSA', 'ES256'] as const) {
  t.test(`16.3 a challenge that is signed with ${algorithm} is good for one purpose, one session and five minutes`, async (t) => {
    const { challenges, now } = await open(t, algorithm)
    const challenge = challenges.create('registration', BINDING)
    t.not(challenges.create('registration', BINDING), challenge)
    const isGood = async (purpose: Purpose, bindings: string[], text = challenge) =>
      await challenges.open(purpose, bindings, text) !== undefined
    t.ok(await isGood('registration', [BINDING]))
    t.ok(await isGood('registration', ['other', BINDING]), 'one of several browsers')
    for (const purpose of ['login', 'step-up'] as const) t.notOk(await isGood(purpose, [BINDING]), purpose)
    t.notOk(await isGood('registration', ['other']))
    t.notOk(await isGood('registration', []))
    const issued = now.value
    now.value = issued + CEREMONY_SECONDS * 1000 - 1
    t.ok(await isGood('registration', [BINDING]))
    now.value++
    t.notOk(await isGood('registration', [BINDING]), 'after five minutes')
    now.value = issued - CEREMONY_SECONDS * 1000 - 1
    t.notOk(await isGood('registration', [BINDING]), 'from the future')
  })
}

t.test('16.3 no change of a challenge is accepted, nor a challenge of another mount', async (t) => {
  const { challenges } = await open(t)
  const octets = Buffer.from(challenges.create('login', BINDING), 'base64url')
  t.equal(octets.length, 134)
  const refuse = async (text: string, name: string) =>
    t.equal(await challenges.open('login', [BINDING], text), undefined, name)
  for (let index = 0; index < octets.length; index++) {
    const changed = Buffer.from(octets)
    changed[index]! ^= 1
    await refuse(changed.toString('base64url'), `byte ${index}`)
  }
  await refuse(octets.subarray(1).toString('base64url'), 'shorter')
  await refuse(Buffer.concat([octets, octets]).toString('base64url'), 'longer')
  await refuse('', 'nothing')
  const other = await open(t)
  await refuse(other.challenges.create('login', BINDING), 'another mount')
})
