import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import type { LightMyRequestResponse } from 'fastify'
import { createUsher, type TestUsher } from './app.ts'

/** Returns the input of a user who does not exist. */
export const somebody = () => ({ name: 'Ada', email: `${randomUUID()}@example.com` })

/** Creates a user as the admin with an idempotency key. */
export async function create (
  { inject, admin }: TestUsher, key: string, payload: object, headers: object = admin.headers
): Promise<LightMyRequestResponse> {
  return inject('POST', '/api/users', { headers: { ...headers, 'idempotency-key': key }, payload })
}

/** What the client can see of a response. */
export const outcomeOf = (response: LightMyRequestResponse) => ({
  status: response.statusCode,
  body: response.body,
  location: response.headers['location'],
  replayed: response.headers['idempotency-replayed'],
})

/** Mounts two Ushers on one schema, like two nodes. */
export async function createTwo (
  t: Test, options: Parameters<typeof createUsher>[1] = {}
): Promise<[TestUsher, TestUsher]> {
  const one = await createUsher(t, options)
  return [one, await createUsher(t, { ...options, schema: one.options.schema!, uploadsDir: one.options.uploadsDir! })]
}
