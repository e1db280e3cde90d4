import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { copyRow } from '../../db/tables/row.ts'
import type { UserRow } from '../../db/tables/index.ts'
import { KnownEmail } from '../../schema/strings/text.ts'
import type { CreateUser, PatchUser, ShownUser, UsherUser } from '../../schema/users/users.ts'
import { ListUsers } from '../../schema/users/user-list.ts'
import type { CallOptions, UserOperations } from '../../schema/options/usher.ts'
import { createParser } from '../../schema/http/validator.ts'
import type { Caller } from '../access/caller.ts'
import { idOf, type Perform } from './perform.ts'

const parseQuery = createParser(Type.Omit(ListUsers, ['fields']))
// An address that cannot exist is that of nobody.
const parseAddress = createParser(Type.Object({ email: KnownEmail }))

/** Creates the operations on users, which do what the routes do. */
export function createUserOperations (app: FastifyInstance, perform: Perform): UserOperations {
  const { usherUsers: users, usherAccounts: accounts } = app
  const { newUsers } = accounts

  const show = (user: UserRow, caller: Caller): UsherUser => copyRow(caller.viewOf(user.id).show(user)) as UsherUser

  return {
    create: (given: CreateUser, options?: CallOptions) => perform(options, async (caller) =>
      show(await newUsers.readAndCreate(caller, given), caller)),

    get: (id: string, options?: CallOptions) =>
      perform(options, async (caller) => show(await users.get(caller, idOf(id)), caller)),

    find: (email: string, options?: CallOptions): Promise<UsherUser> => perform(options, async (caller) => {
      const user = await users.find(caller, parseAddress({ email }).email)
      return (user && show(user, caller)) as UsherUser
    }),

    list: (query: object = {}, options?: CallOptions) => perform(options, async (caller) => {
      const { role, email, q, sort, limit, after } = parseQuery(query)
      const { page, next } = await users.list(caller, { role, email, q, sort, limit, after })
      return { data: page.rows.map((user) => show(user, caller)), page: { next, limit } }
    }),

    update: (id: string, changes: PatchUser, options?: CallOptions) => perform(options, async (caller) =>
      show(await accounts.readAndUpdate(caller, idOf(id), changes), caller)),

    delete: (id: string, options?: CallOptions) =>
      perform(options, (caller) => accounts.delete(caller, idOf(id))),

    export: (id: string, options?: CallOptions) =>
      perform(options, (caller) => accounts.export(caller, idOf(id))),
  } satisfies Record<keyof UserOperations, (...parameters: never[]) => Promise<UsherUser | ShownUser | object | void>>
}
