import { randomBytes } from 'node:crypto'
import { endedOf } from '../../db/sign-in/repairs.ts'
import { insertFirstAdmin, readAdmin } from '../../db/users/first-admin.ts'
import { BreachedPassword } from '../../schema/sign-in/passwords/passwords.ts'
import { CreateUser } from '../../schema/users/users.ts'
import { createParser } from '../../schema/http/validator.ts'
import type { Access } from '../access/index.ts'
import type { MailLinks } from '../mail-links/index.ts'
import type { SignIn } from '../sign-in/index.ts'
import type { Core } from '../core.ts'
import type { HookRunner } from '../hooks/index.ts'
import type { UserRecords } from '../users/user-records.ts'

const parse = createParser(CreateUser)

type GivenAdmin = CreateUser & { password: string }

interface Dependencies extends Core, Pick<Access, 'createHostCaller' | 'sessions'>, Pick<MailLinks, 'undoLinks'>,
  Pick<SignIn, 'credentials' | 'passwords'> {
  users: UserRecords
  hooks: HookRunner
}

/**
 * Creates the first admin if the database has none (contract 4). Call it when the host has added its handlers, which
 * get the event.
 */
export async function createFirstAdmin (dependencies: Dependencies): Promise<void> {
  const { lifecycle: { log }, database: { db, atStart }, users, options } = dependencies
  const { schema, admin, onFirstAdmin, onNoAdmin, onAdminIgnored = warn } = options
  if (!admin && !onFirstAdmin && !onNoAdmin) return
  const known = atStart.admin ?? await readAdmin(db, admin?.email)
  // A host may always pass the option, so it is not reported if it had its effect before.
  if (known.exists) return reportUnless(known.isAdmin)
  if (!admin && !onFirstAdmin) return onNoAdmin!()
  const given = admin ?? { email: 'admin@example.com', password: randomBytes(15).toString('base64url') }
  const created = await create(dependencies, { name: 'Admin', role: 'admin', ...given })
  if (created && !admin) onFirstAdmin!(created)
  // Another node was faster.
  if (!created) reportUnless((await users.find(given.email))?.role === 'admin')

  function reportUnless (isAdmin: boolean): void {
    if (admin && !isAdmin) onAdminIgnored()
  }

  function warn (): void {
    log.warn({ schema }, 'the option admin is ignored, because another admin exists')
  }
}

// Creates the admin with the hooks of the host. Returns the credentials, or undefined if another node was faster.
async function create (
  {
    database: { db }, credentials, passwords, hooks, users, createHostCaller, sessions, undoLinks,
    options: { userFields },
  }: Dependencies,
  given: GivenAdmin
): Promise<{ email: string, password: string } | undefined> {
  const caller = createHostCaller({ via: 'first-admin' })
  const existing = hooks.has('beforeUserCreate') || hooks.has('beforeUserUpdate')
    ? await users.find(given.email)
    : undefined
  const wanted = await (existing
    ? hooks.change('beforeUserUpdate', { role: 'admin', disabled: false }, caller, rejectChange, { user: existing })
      .then(() => given)
    : hooks.change('beforeUserCreate', given, caller, parseAdmin) as Promise<GivenAdmin>
  ).catch((error: Error & { statusCode?: number }) => { throw explainRejection(error, given.email) })
  const { name, email, password } = wanted
  const [onCreate, onUpdate] = [hooks.during('onUserCreate', caller), hooks.during('onUserUpdate', caller)]
  const created = await insertFirstAdmin(db, {
    name,
    email,
    passwordHash: await passwords.hashChosen(password, { isKnown: true })
      .catch((error) => { throw explainPassword(error) }),
    fields: userFields,
    inTransaction: async (trx, user, repaired) => {
      if (repaired) {
        const { email, id: userId } = user
        await undoLinks.notifyPasswordChanged(trx, { email, userId, language: caller.languageOf(userId) })
        await credentials.recordRepaired(trx, caller, repaired, { userId, email })
      }
      await (repaired ? onUpdate : onCreate)?.(trx, user)
    },
  })
  if (created?.repaired) sessions.markEnded(endedOf(created.repaired))
  return created && { email, password }
}

function parseAdmin (input: unknown): CreateUser {
  const user = parse(input)
  if (user.role !== 'admin' || user.password === undefined) {
    throw new Error('the first admin needs the role admin and a password')
  }
  return user
}

// The message of the hook is written for a user who sends a request. At a start, it lacks what was rejected.
function explainRejection (error: Error & { statusCode?: number }, email: string): Error {
  if (error.statusCode === undefined || error.statusCode >= 500) return error
  return new Error(
    `usher: a hook rejects ${email} as the first admin: ${error.message}. Choose another address (option admin, setting ADMIN_EMAIL), or permit it in the hook`,
    { cause: error }
  )
}

function explainPassword (error: Error): Error {
  if (!(error instanceof BreachedPassword)) return error
  return new Error(`usher: the ${error.message}: choose another one for the first admin (option admin, setting ADMIN_PASSWORD)`)
}

function rejectChange (): never {
  throw new Error('the change that makes a user the first admin is settled')
}
