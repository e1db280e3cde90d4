import { randomUUID } from 'node:crypto'
import type { UsherOptions } from '../../app.ts'
import type { LoggedIn, TestUsher } from './app.ts'
import { openSql } from './sql.ts'
import { until } from './until.ts'
import type { Test } from 'tap'

export const newSlug = (): string => `org-${randomUUID().slice(0, 12)}`

/** Adds what tests of organisations do. The app needs the options of `organizationOptions`. */
export function withOrganizations (t: Test, usher: TestUsher, mails: ReadonlyMap<string, string>) {
  const { inject, admin } = usher
  const sql = openSql(t, usher)

  /** Creates a user whose address is verified. */
  async function createVerified (name = 'Somebody'): Promise<LoggedIn> {
    const user = await usher.createUser({ name })
    await sql`update users set email_verified = true where id = ${user.id}`
    return user
  }

  /** Founds an organisation. */
  async function found (owner: LoggedIn, name = 'Analytical Engines'): Promise<string> {
    const { statusCode, body } = await inject('POST', '/api/organizations', {
      headers: owner.headers, payload: { name, slug: newSlug() },
    })
    if (statusCode !== 201) throw new Error(body)
    return JSON.parse(body).id
  }

  /** Adds a user with a role, as an admin of the service. */
  async function add (id: string, { id: userId }: { id: string }, role = 'member'): Promise<string> {
    const { statusCode, body } =
      await inject('POST', `/api/organizations/${id}/members`, { headers: admin.headers, payload: { userId, role } })
    if (statusCode !== 201) throw new Error(body)
    return JSON.parse(body).id
  }

  /** Creates a user who is a member with a role. */
  async function createMember (id: string, role = 'member'): Promise<LoggedIn> {
    const user = await createVerified()
    await add(id, user, role)
    return user
  }

  /** Returns the token of the last mail to an address. */
  async function tokenTo (email: string): Promise<string> {
    await until('the mail', () => mails.has(email))
    return /token=([\w-]+)/.exec(mails.get(email)!)![1]!
  }

  return { sql, createVerified, found, add, createMember, tokenTo }
}

/** Returns the options of an app with organisations, and where its mails are. */
export function organizationOptions (given: UsherOptions = {}): { options: UsherOptions, mails: Map<string, string> } {
  const mails = new Map<string, string>()
  const mailer: UsherOptions['mailer'] = ({ to, text }) => { mails.set(to, text) }
  return { mails, options: { organizations: true, mailer, publicUrl: 'http://localhost', ...given } }
}
