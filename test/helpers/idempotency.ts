import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import type { LightMyRequestResponse } from 'fastify'
import type { UsherOptions } from '../../app.ts'
import { createUsher, sharedUsher, type TestUsher } from './app.ts'

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

/** Returns an app that tests share, with an admin of the test's own, because every actor has keys of their own. */
export async function shareOne (options: UsherOptions = {}): Promise<TestUsher> {
  const usher = await sharedUsher(options)
  return { ...usher, admin: await usher.createUser({ role: 'admin' }) }
}

/** Returns two apps that tests share, like two nodes, with an admin of the test's own. */
export async function shareTwo (): Promise<[TestUsher, TestUsher]> {
  const one = await shareOne()
  return [one, { ...await sharedUsher(otherNode(one)), admin: one.admin }]
}

/** Mounts two Ushers on one schema, like two nodes. */
export async function createTwo (t: Test, options: UsherOptions = {}): Promise<[TestUsher, TestUsher]> {
  const one = await createUsher(t, options)
  return [one, await createUsher(t, { ...options, ...otherNode(one) })]
}

const otherNode = ({ options }: TestUsher) => ({ schema: options.schema!, uploadsDir: options.uploadsDir! })
