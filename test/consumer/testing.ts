// A test of a host that knows `fastify-usher/testing` by its published declarations alone.
import { createTestUsher, type TestUsher } from 'fastify-usher/testing'

const { app, usher, tokenFor, close }: TestUsher = await createTestUsher({ signUp: false })
const { id } = await usher.users.create({ name: 'Ada', email: 'ada@example.com', plan: 'pro' })
const token: string = await tokenFor({ id })
await app.inject({ url: '/api/users', headers: { authorization: `Bearer ${token}` } })
await close()
