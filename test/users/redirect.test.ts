import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { nightly } from '../helpers/nightly.ts'

const { inject, options } = await createUsher(t)

t.test('6 GET /api/redirect returns 302 with the Location of the users list (given)', async (t) => {
  const response = await inject('GET', '/api/redirect')
  t.equal(response.statusCode, 302)
  t.equal(response.headers.location, '/api/users')
})

nightly('6 under a prefix, the Location contains it', async (t) => {
  const { inject } = await createUsher(t, { ...options, prefix: '/accounts' })
  const response = await inject('GET', '/api/redirect')
  t.equal(response.headers.location, '/accounts/api/users')
  t.equal((await inject('GET', '/api/users')).statusCode, 200)
})

nightly('6 the option redirectTo sets another target', async (t) => {
  const { inject } = await createUsher(t, { ...options, redirectTo: '/elsewhere' })
  t.equal((await inject('GET', '/api/redirect')).headers.location, '/elsewhere')
})
