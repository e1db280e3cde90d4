import type { LoggedIn, TestUsher } from './app.ts'

/** A new API key, with the headers of its requests. */
export interface TestKey {
  id: string
  key: string
  headers: { authorization: string }
}

/** Creates an API key of a user, or of a service user on behalf of an admin. */
export async function createKey (
  { inject }: Pick<TestUsher, 'inject'>, { headers }: Pick<LoggedIn, 'headers'>,
  { userId, ...given }: {
    name?: string, actions?: readonly string[], expiresAt?: string, organizationId?: string, userId?: string
  } = {}
): Promise<TestKey> {
  const path = userId === undefined ? '/api/auth/keys' : `/api/users/${userId}/keys`
  const response = await inject('POST', path, { headers, payload: { name: 'A key', ...given } })
  if (response.statusCode !== 201) throw new Error(`key: ${response.statusCode} ${response.body}`)
  const { id, key } = response.json()
  return { id, key, headers: { authorization: `Bearer ${key}` } }
}

/** Creates a service user, and returns its id. */
export async function createService (
  { inject, admin }: Pick<TestUsher, 'inject' | 'admin'>, given: { name?: string, email: string, role?: string }
): Promise<string> {
  const payload = { name: 'Robot', kind: 'service', ...given }
  const response = await inject('POST', '/api/users', { headers: admin.headers, payload })
  if (response.statusCode !== 201) throw new Error(`service: ${response.statusCode} ${response.body}`)
  return response.json().id
}
