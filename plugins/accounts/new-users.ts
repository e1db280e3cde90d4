import { confirmSignUp, getSignUp } from '../../db/auth/sign-ups.ts'
import type { UserRow } from '../../db/tables/index.ts'
import { insertUsers } from '../../db/users/users.ts'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import { rejectPersonalWords } from '../../schema/auth/password.ts'
import type { SignUp } from '../../schema/auth/sign-up.ts'
import { EmailTaken, type CreateUser } from '../../schema/users/user.ts'
import { withoutProtected } from '../../schema/users/user-fields.ts'
import { userInputs } from '../../schema/users/user-inputs.ts'
import type { Caller } from '../auth/caller.ts'
import type { Audit } from '../audit/index.ts'
import { hashSecret } from '../auth/cookie-value.ts'
import type { Auth } from '../auth/index.ts'
import type { Core } from '../core.ts'
import type { HookRunner } from '../hooks/index.ts'
import type { Users } from '../users/index.ts'
import { authorizeCreation } from './permissions.ts'

interface Dependencies extends Pick<Core, 'database' | 'options'>, Pick<Auth, 'passwords' | 'signUps' | 'throttle'> {
  users: Users
  audit: Audit
  hooks: HookRunner
}

/** Creates users: one function for each way to become a user. */
export function createNewUsers (
  { database: { db }, users, passwords, audit, hooks, signUps, throttle, options: { userFields } }: Dependencies
) {
  const { creation, signUp } = userInputs(userFields)

  // The values of the fields of the host, or undefined without fields.
  function fieldsOf (user: object): Record<string, unknown> | undefined {
    if (userFields.length === 0) return undefined
    const values = userFields.map(({ name }) => [name, user[name as keyof object] as unknown] as const)
    return Object.fromEntries(values.filter(([, value]) => value !== undefined && value !== null))
  }

  const check = (parse: (input: unknown) => CreateUser) => (input: unknown): CreateUser => {
    const user = parse(input)
    rejectOwnWords(user)
    return creation.pick(user)
  }

  return {
    /** Returns whether creating a user takes little more than a statement. */
    isQuick: ({ password }: CreateUser): boolean => password === undefined && !hooks.has('beforeUserCreate') && !hooks.has('onUserCreate'),

    /** Returns what makes two requests to create a user the same. Members that are ignored do not matter. */
    contentOf (given: CreateUser): { content: object, password: string | undefined } {
      const { password, ...content } = creation.pick(given)
      return { content, password }
    },

    /**
     * Creates a user. Throws `Unauthenticated`, `Forbidden`, `InvalidInput` if the password is the name or the address,
     * `EmailTaken`, `InvalidToken` if the caller may no longer act, and what a hook of the host throws.
     * @param given what the schema `CreateUser` accepts, of what `withoutIgnored` has returned
     * @param once under what the result is stored. If the key is taken, it throws `KeyTaken`
     */
    async create (caller: Caller, given: CreateUser, once?: ResultKey): Promise<UserRow> {
      authorizeCreation(caller, given)
      rejectOwnWords(given)
      const wanted = hooks.has('beforeUserCreate')
        ? await hooks.change('beforeUserCreate', creation.pick(given), caller, check(creation.parse))
        : given
      const { password, ...user } = wanted
      const passwordHash = password === undefined ? null : await passwords.hash(password, caller.client)
      const row = { ...user, passwordHash, context: audit.contextOf(caller), token: caller.token, once }
      const inTransaction = hooks.during('onUserCreate', caller)
      // Without a hook, users that are created at the same time share a statement, which checks their tokens.
      if (!inTransaction) return users.create(row, caller)
      return db.transaction().execute(async (trx) => {
        const [created] = await insertUsers(trx, [row], userFields)
        if (created instanceof Error) throw created
        await inTransaction(trx, created!)
        await caller.confirm()
        return created!
      })
    },

    /**
     * Stores a sign-up, after the response. Throws `InvalidInput` if the password is the name or the address,
     * `TooManyRequests`, and what a hook of the host throws, whether or not the address has an account.
     * @param given what the schema `SignUp` accepts, without the fields that users may not write
     */
    async signUp (caller: Caller, given: SignUp): Promise<void> {
      rejectOwnWords(given)
      const { address, client } = caller
      await throttle.signUp({ email: given.email, address, ...client && { client } })
      const wanted = hooks.has('beforeUserCreate')
        ? await hooks.change('beforeUserCreate', signUp.pick(given), caller, check(signUp.parse))
        : given
      const { name, email, password } = wanted as SignUp
      // Whatever the address, the password is hashed before the response, so that the response takes the same time.
      signUps.request({ name, email, passwordHash: await passwords.hash(password, caller.client), fields: fieldsOf(wanted) }, caller)
    },

    /** Creates the user of a sign-up with the token from the mail. Throws `InvalidInput`, `EmailTaken`, and what a hook of the host throws. */
    async confirmSignUp (caller: Caller, token: string): Promise<UserRow> {
      const hash = hashSecret(token)
      const inTransaction = hooks.during('onUserCreate', caller)
      if (!inTransaction && !hooks.has('beforeUserCreate')) return confirmSignUp(db, hash, caller, userFields)
      const { fields, ...pending } = await getSignUp(db, hash)
      if (await users.find(pending.email)) throw new EmailTaken()
      const given = withoutProtected(userFields, creation.pick({ ...fields, ...pending }), 'owner')
      const changed = await hooks.change('beforeUserCreate', { ...given, role: 'user' }, caller, (input) => {
        const user = creation.parse(input)
        if (user.email !== pending.email || user.password !== undefined) throw new Error('the address and the password of a sign-up are settled')
        return user
      })
      const wanted = { name: changed.name, role: changed.role, fields: fieldsOf(changed) }
      if (!inTransaction) return confirmSignUp(db, hash, caller, userFields, wanted)
      return db.transaction().execute(async (trx) => {
        const user = await confirmSignUp(trx, hash, caller, userFields, wanted)
        await inTransaction(trx, user)
        return user
      })
    },
  }
}

function rejectOwnWords ({ password, ...user }: CreateUser): void {
  if (password !== undefined) rejectPersonalWords(password, user)
}
