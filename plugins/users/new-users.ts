import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { confirmSignUp, getSignUp } from '../../db/sign-ups.ts'
import type { UserRow } from '../../db/tables.ts'
import { insertUsers } from '../../db/users.ts'
import { rejectPersonalWords } from '../../schema/password.ts'
import { SignUp } from '../../schema/sign-up.ts'
import { CreateUser, EmailTaken } from '../../schema/user.ts'
import { createParser } from '../../schema/validator.ts'
import type { Caller } from '../auth/caller.ts'
import { hashSecret } from '../auth/cookie-value.ts'
import { authorizeCreation } from './permissions.ts'

const parseUser = createParser(CreateUser)
const parseSignUp = createParser(SignUp)

declare module 'fastify' {
  interface FastifyInstance {
    usherNewUsers: ReturnType<typeof createNewUsers>
  }
}

function createNewUsers (app: FastifyInstance) {
  const {
    usherDatabase: { db }, usherUsers: users, usherPasswords: passwords, usherAudit: audit, usherHooks: hooks, usherSignUps: signUps,
  } = app

  return {
    /**
     * Creates a user. Throws `Unauthenticated`, `Forbidden`, `InvalidInput` if the password is the name or the address, `EmailTaken`,
     * `InvalidToken` if the caller may no longer act, and what a hook of the host throws.
     * @param given what the schema `CreateUser` accepts
     */
    async create (caller: Caller, given: CreateUser): Promise<UserRow> {
      authorizeCreation(caller, given)
      rejectOwnWords(given)
      const wanted = hooks.has('beforeUserCreate') ? await hooks.change('beforeUserCreate', pick(CreateUser, given), caller, check(parseUser)) : given
      const { password, ...user } = wanted
      const passwordHash = password === undefined ? null : await passwords.hash(password, caller.client)
      const row = { ...user, passwordHash, context: audit.contextOf(caller) }
      const also = hooks.during('onUserCreate', caller)
      // Without a hook, users that are created at the same time share a statement.
      if (!also) return users.create(row, caller)
      return db.transaction().execute(async (trx) => {
        const [created] = await insertUsers(trx, [row])
        if (created instanceof Error) throw created
        await also(trx, created!)
        await caller.confirm()
        return created!
      })
    },

    /**
     * Stores a sign-up, after the response. Throws `InvalidInput` if the password is the name or the address, and what a hook of the host
     * throws, whether or not the address has an account.
     */
    async signUp (caller: Caller, given: SignUp): Promise<void> {
      const wanted = hooks.has('beforeUserCreate') ? await hooks.change('beforeUserCreate', pick(SignUp, given), caller, check(parseSignUp)) : given
      const { name, email, password } = wanted as SignUp
      // Whatever the address, the password is hashed before the response, so that the response takes the same time.
      signUps.request({ name, email, passwordHash: await passwords.hash(password, caller.client) }, caller)
    },

    /** Creates the user of a sign-up with the token from the mail. Throws `InvalidInput`, `EmailTaken`, and what a hook of the host throws. */
    async confirmSignUp (caller: Caller, token: string): Promise<UserRow> {
      const hash = hashSecret(token)
      const also = hooks.during('onUserCreate', caller)
      if (!also && !hooks.has('beforeUserCreate')) return confirmSignUp(db, hash, caller)
      const pending = await getSignUp(db, hash)
      if (await users.find(pending.email)) throw new EmailTaken()
      const wanted = await hooks.change('beforeUserCreate', { ...pending, role: 'user' }, caller, (input) => {
        const { name, email, role, password } = parseUser(input)
        if (email !== pending.email || password !== undefined) throw new Error('the address and the password of a sign-up are settled')
        return { name, email, role }
      })
      if (!also) return confirmSignUp(db, hash, caller, wanted)
      return db.transaction().execute(async (trx) => {
        const user = await confirmSignUp(trx, hash, caller, wanted)
        await also(trx, user)
        return user
      })
    },
  }
}

// Returns the members that a hook sees. Clients may send others, which are ignored.
function pick ({ properties }: typeof CreateUser | typeof SignUp, given: CreateUser): CreateUser {
  return Object.fromEntries(Object.entries(given).filter(([name]) => Object.hasOwn(properties, name))) as CreateUser
}

const check = (parse: (input: unknown) => CreateUser) => (input: unknown): CreateUser => {
  const user = parse(input)
  rejectOwnWords(user)
  return pick(CreateUser, user)
}

function rejectOwnWords ({ password, ...user }: CreateUser): void {
  if (password !== undefined) rejectPersonalWords(password, user)
}

/** Creates users: one function for each way to become a user. */
export default fp(async function newUsers (app) {
  app.decorate('usherNewUsers', createNewUsers(app))
}, { name: 'usher-new-users', dependencies: ['usher-users', 'usher-passwords', 'usher-audit', 'usher-auth', 'usher-hooks', 'usher-sign-ups'] })
