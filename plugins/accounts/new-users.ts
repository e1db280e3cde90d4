import { confirmSignUp, type SignUpIdentity } from '../../db/mail-links/sign-ups.ts'
import { storeCredentialEvent } from '../../db/outbox/store.ts'
import { insertIdentity } from '../../db/sign-in/providers/identities.ts'
import type { Database, UserRow } from '../../db/tables/index.ts'
import { plainColumns } from '../../db/users/columns.ts'
import { findUsers, insertUsers, verifyAddress } from '../../db/users/users.ts'
import { InvalidInput } from '../../schema/http/errors.ts'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import { rejectPersonalWords } from '../../schema/sign-in/passwords/passwords.ts'
import type { ConfirmSignUp, SignUp } from '../../schema/mail-links/sign-ups.ts'
import { PasswordRequired } from '../../schema/sign-in/passwords/passwords.ts'
import { IdentityTaken } from '../../schema/sign-in/providers.ts'
import { EmailTaken, type CreateUser } from '../../schema/users/users.ts'
import { withoutProtected } from '../../schema/users/user-fields.ts'
import { userInputs } from '../../schema/users/user-inputs.ts'
import type { Caller } from '../access/caller.ts'
import type { Audit } from '../audit/index.ts'
import type { MailLinks } from '../mail-links/index.ts'
import type { SignIn } from '../sign-in/index.ts'
import type { Throttle } from '../throttle/throttle.ts'
import { hashingOf } from '../sign-in/passwords/passwords.ts'
import type { NewProviderUser } from '../sign-in/providers/index.ts'
import type { OpenedSignUp } from '../mail-links/sign-ups.ts'
import type { Core } from '../core.ts'
import type { HookRunner } from '../hooks/index.ts'
import type { UserRecords } from '../users/user-records.ts'
import { authorizeCreation, withoutIgnored } from './permissions.ts'

interface Dependencies extends Pick<Core, 'database' | 'options'>, Pick<MailLinks, 'signUps'>,
  Pick<SignIn, 'passwords'> {
  throttle: Throttle
  users: UserRecords
  audit: Audit
  hooks: HookRunner
}

/** Creates users: one function for each way to become a user. */
export function createNewUsers (
  {
    database: { db, newId }, users, passwords, audit, hooks, signUps, throttle, options, options: { userFields },
  }: Dependencies
) {
  const { creation, signUp } = userInputs(options)

  const plain = plainColumns(userFields)

  // The values that a sign-up keeps as JSON, or undefined if there can be none.
  function fieldsOf (user: object): Record<string, unknown> | undefined {
    if (plain.length === 0) return undefined
    const values = plain.map(({ name }) => [name, user[name as keyof object] as unknown] as const)
    return Object.fromEntries(values.filter(([, value]) => value !== undefined && value !== null))
  }

  const check = (parse: (input: unknown) => CreateUser) => (input: unknown): CreateUser => {
    const user = parse(input)
    rejectOwnWords(user)
    return creation.pick(user)
  }

  // Creates a user as the caller may.
  async function insert (caller: Caller, given: CreateUser, once?: ResultKey): Promise<UserRow> {
    rejectOwnWords(given)
    const wanted = hooks.has('beforeUserCreate')
      ? await hooks.change('beforeUserCreate', creation.pick(given), caller, check(creation.parse))
      : given
    const { password, ...user } = wanted
    const passwordHash = password === undefined ? null : await passwords.hashChosen(password, hashingOf(caller))
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
  }

  return {
    /** Returns whether creating a user takes little more than a statement. */
    isQuick: ({ password }: CreateUser): boolean =>
      password === undefined && !hooks.has('beforeUserCreate') && !hooks.has('onUserCreate'),

    /** Returns what makes two requests to create a user the same. Members that are ignored do not matter. */
    contentOf (given: CreateUser): { content: object, password: string | undefined } {
      const { password, ...content } = creation.pick(given)
      return { content, password }
    },

    /**
     * Creates a user. Throws `Unauthenticated`, `Forbidden`, `InvalidInput` if the password is the name or the address,
     * or if a service user has one, `EmailTaken`, `InvalidToken` if the caller may no longer act, and what a hook of
     * the host throws.
     * @param given what the schema `CreateUser` accepts, of what `withoutIgnored` has returned
     * @param once under what the result is stored. If the key is taken, it throws `KeyTaken`
     */
    async create (caller: Caller, given: CreateUser, once?: ResultKey): Promise<UserRow> {
      authorizeCreation(caller, given)
      return insert(caller, given, once)
    },

    /**
     * Does the same with a body that was not read yet: it authorizes it, and validates it without the members that the
     * caller may not write. Throws what `create` throws, and `InvalidInput`.
     */
    async readAndCreate (caller: Caller, given: unknown): Promise<UserRow> {
      authorizeCreation(caller, given)
      return insert(caller, creation.parse(withoutIgnored(userFields, caller, given)))
    },

    /**
     * Creates a user whom a provider has authenticated, without a password. The permission is that of the provider's
     * option `signUp`. Throws `EmailTaken`, and what a hook of the host and `inTransaction` throw.
     * @param inTransaction adds what belongs to the user
     */
    async createByProvider (
      caller: Caller, { name, email }: NewProviderUser,
      inTransaction: (trx: Database, created: UserRow) => Promise<void>
    ): Promise<UserRow> {
      const user = await hooks.change('beforeUserCreate', { name, email, role: 'user' }, caller, (input) => {
        const wanted = creation.parse(input)
        if (wanted.email !== email || wanted.password !== undefined) {
          throw new Error('the address of a user whom a provider has authenticated is settled, and there is no password')
        }
        return creation.pick(wanted) as CreateUser
      })
      const onCreate = hooks.during('onUserCreate', caller)
      return db.transaction().execute(async (trx) => {
        const row = { ...user, passwordHash: null, context: audit.contextOf(caller) }
        const [created] = await insertUsers(trx, [row], userFields)
        if (created instanceof Error) throw created
        const { id } = created!
        await verifyAddress(trx, id)
        const [verified] = await findUsers(trx, [id], userFields)
        await inTransaction(trx, verified!)
        await onCreate?.(trx, verified!)
        return verified!
      })
    },

    /**
     * Creates a user who has proved the address by the token of an invitation, whether or not anybody may sign up.
     * Without a password, the user logs in by a provider or a mail. Throws `InvalidInput` if the password is the name
     * or the address, `EmailTaken`, and what a hook of the host, `check` and `inTransaction` throw.
     * @param steps `check` runs before anything is written, with the id that the user will have; `inTransaction` adds
     * what belongs to the user
     */
    async createByInvitation (
      caller: Caller, { password, ...given }: { name: string, email: string, password?: string | undefined },
      { check, inTransaction }: {
        check: (userId: string) => Promise<void>
        inTransaction: (trx: Database, created: UserRow) => Promise<void>
      }
    ): Promise<UserRow> {
      const { email } = given
      rejectOwnWords({ ...given, password })
      const user = await hooks.change('beforeUserCreate', { ...given, role: 'user' }, caller, (input) => {
        const wanted = creation.parse(input)
        if (wanted.email !== email || wanted.password !== undefined) {
          throw new Error('the address and the password of an invited user are settled')
        }
        return creation.pick(wanted) as CreateUser
      })
      const id = newId()
      await check(id)
      const passwordHash = password === undefined
        ? null
        : await passwords.hashChosen(password, { ...hashingOf(caller), isKnown: true })
      const onCreate = hooks.during('onUserCreate', caller)
      return db.transaction().execute(async (trx) => {
        const row = { ...user, passwordHash, context: audit.contextOf(caller) }
        const [created] = await insertUsers(trx, [row], userFields, () => id)
        if (created instanceof Error) throw created
        await verifyAddress(trx, id)
        const [verified] = await findUsers(trx, [id], userFields)
        await inTransaction(trx, verified!)
        await onCreate?.(trx, verified!)
        return verified!
      })
    },

    /**
     * Stores a sign-up, after the response. Throws `InvalidInput` if the password is the name or the address,
     * `TooManyRequests`, and what a hook of the host throws, whether or not the address has an account.
     * @param given what the schema `SignUp` accepts, without the fields that users may not write
     * @returns the secret with which the client proves to the confirmation that it has sent the sign-up
     */
    async signUp (caller: Caller, given: SignUp): Promise<string> {
      rejectOwnWords(given)
      const { address, client } = caller
      await throttle.signUp({ email: given.email, address, ...client && { client } })
      const wanted = hooks.has('beforeUserCreate')
        ? await hooks.change('beforeUserCreate', creation.pick(signUp.pick(given)), caller, check(signUp.parse))
        : given
      const { name, email, password } = wanted
      // Whatever the address, the password is hashed before the response, so that the response takes the same time.
      const passwordHash = password === undefined ? null : await passwords.hashChosen(password, hashingOf(caller))
      return signUps.request({ name, email, passwordHash, fields: fieldsOf(wanted) }, caller)
    },

    /**
     * Stores the sign-up of somebody whom a provider has authenticated that does not vouch for the address, after the
     * response. The same happens whether or not the address has an account. Throws `TooManyRequests`, and what a hook
     * of the host throws.
     * @returns what `signUp` returns
     */
    async signUpByProvider (
      caller: Caller, given: { name: string, email: string }, identity: SignUpIdentity
    ): Promise<string> {
      const { address, client } = caller
      await throttle.signUp({ email: given.email, address, ...client && { client } })
      const wanted = await hooks.change('beforeUserCreate', given, caller, check(signUp.parse))
      const { name, email } = wanted
      return signUps.request({ name, email, passwordHash: null, fields: fieldsOf(wanted), identity }, caller)
    },

    /**
     * Creates the user of a sign-up. Throws `PasswordRequired`, `InvalidInput` if the password is the name or the
     * address, or if the link was used or has expired meanwhile, `EmailTaken`, `IdentityTaken`, and what a hook of the
     * host throws.
     * @param opened the sign-up of the token from the mail
     * @param given what replaces the members of the sign-up
     */
    async confirmSignUp (
      caller: Caller, opened: OpenedSignUp, given: Omit<ConfirmSignUp, 'token' | 'signUpId' | 'logIn'>
    ): Promise<UserRow> {
      const { hash, email, isOwn, bindingHash, identity } = opened
      const { password, ...replaced } = given
      if (opened.needsPassword && password === undefined) throw new PasswordRequired()
      // Somebody else may have sent the sign-up, so its fields are nobody's. The name is, until it is replaced, no more
      // than a text that the user sees.
      const own = { name: opened.name, email, ...isOwn && opened.fields, ...replaced }
      const user = { ...withoutProtected(userFields, creation.pick(own), 'owner'), email, role: 'user' } as const
      rejectOwnWords({ ...user, password })
      const inTransaction = hooks.during('onUserCreate', caller)
      const hasHooks = inTransaction !== undefined || hooks.has('beforeUserCreate')
      if (hasHooks && await users.find(email)) throw new EmailTaken()
      const changed = await hooks.change('beforeUserCreate', user, caller, (input) => {
        const user = creation.parse(input)
        if (user.email !== email || user.password !== undefined) {
          throw new Error('the address and the password of a sign-up are settled')
        }
        return user
      })
      const { name, role = 'user' } = changed
      rejectOwnWords({ ...changed, password })
      // The token is valid, so a flood of others costs no hashes.
      const passwordHash = password === undefined
        ? undefined
        : await passwords.hashChosen(password, { ...hashingOf(caller), isKnown: true })
      const confirmed = { name, role, fields: fieldsOf(changed), passwordHash, bindingHash }
      if (!inTransaction && !identity) return confirmSignUp(db, hash, caller, userFields, confirmed)
      return db.transaction().execute(async (trx) => {
        const user = await confirmSignUp(trx, hash, caller, userFields, confirmed)
        if (identity) {
          const { id: userId } = user
          if (!await insertIdentity(trx, { id: newId(), userId, ...identity, tokens: null })) throw new IdentityTaken()
          await audit.add(caller, { action: 'identity.add', actorId: userId, userId }, trx)
          await storeCredentialEvent(trx, 'credential.added', { userId, actorId: userId, kind: 'identity' })
        }
        await inTransaction?.(trx, user)
        return user
      })
    },
  }
}

function rejectOwnWords ({ password, ...user }: CreateUser): void {
  if (password === undefined) return
  if (user.kind === 'service') throw new InvalidInput('password must be absent for a service user')
  rejectPersonalWords(password, user)
}
