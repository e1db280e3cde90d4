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
import { listUsersFor } from '../users/list-users.ts'
import { idOf, type Perform } from './perform.ts'

const parseQuery = createParser(Type.Omit(ListUsers, ['fields']))
// An address that cannot exist is that of nobody.
const parseAddress = createParser(Type.Object({ email: KnownEmail }))

/** Creates the operations on users, which do what the routes do. */
export function createUserOperations (app: FastifyInstance, perform: Perform): UserOperations {
  const { usherUsers: users, usherAccounts: accounts, usherAccess: { policy } } = app
  const { newUsers } = accounts

  const show = (user: UserRow, { isHost, actor }: Caller): UsherUser =>
    copyRow(isHost ? policy.showAll(user) : policy.viewOf(actor, user.id).show(user)) as UsherUser

  return {
    create: (given: CreateUser, options?: CallOptions) => perform.write(options, async (caller) =>
      show(await newUsers.readAndCreate(caller, given), caller)),

    get: (id: string, options?: CallOptions) => perform.read(options, async (caller) => {
      caller.authorize('users:read', idOf(id))
      return show(await users.get(idOf(id)), caller)
    }),

    find: (email: string, options?: CallOptions): Promise<UsherUser> => perform.read(options, async (caller) => {
      const user = await users.find(parseAddress({ email }).email)
      const isVisible = user && caller.allows('users:read', user.id) && caller.allows('users:read-email', user.id)
      return (isVisible ? show(user, caller) : undefined) as UsherUser
    }),

    list: (query: object = {}, options?: CallOptions) => perform.read(options, async (caller) => {
      caller.authorize('users:list')
      const { role, email, q, sort, limit, after } = parseQuery(query)
      const { page, next } = await listUsersFor(
        app, { role, email, q, sort, limit, after }, caller.isHost ? undefined : caller.actor
      )
      return { data: page.rows.map((user) => show(user, caller)), page: { next, limit } }
    }),

    update: (id: string, changes: PatchUser, options?: CallOptions) => perform.write(options, async (caller) =>
      show(await accounts.readAndUpdate(caller, idOf(id), changes), caller)),

    delete: (id: string, options?: CallOptions) =>
      perform.write(options, (caller) => accounts.delete(caller, idOf(id))),

    export: (id: string, options?: CallOptions) =>
      perform.write(options, (caller) => accounts.export(caller, idOf(id))),
  } satisfies Record<keyof UserOperations, (...parameters: never[]) => Promise<UsherUser | ShownUser | object | void>>
}
