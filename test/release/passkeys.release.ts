import t from 'tap'
import { createVerifier } from '../../plugins/sign-in/passkeys/verifier.ts'
import { openCore } from '../helpers/core.ts'
import { slow } from '../helpers/deadlines.ts'
import { fuzzCredentials } from '../helpers/fuzz-credentials.ts'

const INPUTS = 100_000

t.test('16.3 none of 100,000 mutations of a response is accepted, and none ends the thread', async (t) => {
  const { app, core } = await openCore(t, { deadlines: slow })
  const verifier = createVerifier(core)
  await app.ready()
  const seed = Math.floor(Math.random() * 2 ** 31)
  const { rejected, registered } = await fuzzCredentials(verifier, { inputs: INPUTS, seed })
  t.equal(rejected + registered, INPUTS, `with the seed ${seed}`)
  t.comment(`${registered} registrations were as valid as before`)
})
