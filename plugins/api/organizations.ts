import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { copyRow } from '../../db/tables/row.ts'
import type { Page } from '../../db/tables/page.ts'
import { decodeCursor, encodeCursor } from '../../schema/http/cursor.ts'
import { createParser } from '../../schema/http/validator.ts'
import type { OrganizationAction } from '../../schema/options/organizations.ts'
import type {
  CallOptions, InvitationOperations, MemberOperations, NewUsherOrganization, OrganizationOperations, UsherPage,
} from '../../schema/options/usher.ts'
import {
  AddMember, CreateInvitation, ListInvitations, ListMembers, ListOrganizations, PatchMember, type PatchOrganization,
} from '../../schema/organizations/organizations.ts'
import type { Caller } from '../access/caller.ts'
import { idOf, type Perform } from './perform.ts'

const parseOwner = createParser(Type.Object({ ownerId: Type.Optional(Type.String()) }))
const parseQuery = createParser(ListOrganizations)
const parseNewMember = createParser(AddMember)
const parseRole = createParser(PatchMember)
const parseMemberQuery = createParser(ListMembers)
const parseInvitation = createParser(CreateInvitation)
const parseInvitationQuery = createParser(ListInvitations)

/** Creates the operations on organisations, their members and invitations, which do what the routes do. */
export function createOrganizationOperations (
  app: FastifyInstance, performAny: Perform
): OrganizationOperations {
  const { usherOptions: { organizations: settings }, usherOrganizations } = app

  const perform: Perform = async (options, operate) => {
    if (!settings) throw new Error('usher: organizations: set the option organizations')
    return performAny(options, operate)
  }

  // 403 and 404 come before 400, as on routes, which ask the policy before they validate a body.
  const parseFor = async <Input>(
    caller: Caller, action: OrganizationAction, id: string, parse: (input: unknown) => Input, input: unknown
  ): Promise<Input> => {
    await usherOrganizations.operations.read(caller, action, idOf(id))
    return parse(input)
  }

  const members: MemberOperations = {
    get: (id, userId, options) => perform(options, async (caller) =>
      copyRow(await usherOrganizations.operations.getMember(caller, idOf(id), idOf(userId)))),

    list: (id, query = {}, options) => perform(options, async (caller) => {
      const { limit, after, ...filters } = await parseFor(caller, 'members:list', id, parseMemberQuery, query)
      return show(limit, await usherOrganizations.operations.listMembers(caller, idOf(id), {
        ...filters, limit, after: after && decodeCursor(after),
      }))
    }),

    add: (id, given, options) => perform(options, async (caller) => {
      const { userId, role } = await parseFor(caller, 'members:invite', id, parseNewMember, given)
      return copyRow(await usherOrganizations.operations.addMember(caller, idOf(id), { userId, role }))
    }),

    update: (id, userId, changes, options) => perform(options, async (caller) => {
      const { role } = await parseFor(caller, 'members:update', id, parseRole, changes)
      return copyRow(await usherOrganizations.operations.updateMember(caller, idOf(id), idOf(userId), role))
    }),

    remove: (id, userId, options) => perform(options, (caller) =>
      usherOrganizations.operations.removeMember(caller, idOf(id), idOf(userId))),
  }

  const invitations: InvitationOperations = {
    create: (id, given, options) => perform(options, async (caller) => {
      const invitation = await parseFor(caller, 'members:invite', id, parseInvitation, given)
      return copyRow(await usherOrganizations.invitations.create(caller, idOf(id), invitation))
    }),

    list: (id, query = {}, options) => perform(options, async (caller) => {
      const { limit, after } = await parseFor(caller, 'members:invite', id, parseInvitationQuery, query)
      return show(limit, await usherOrganizations.invitations.list(caller, idOf(id), {
        limit, after: after && decodeCursor(after),
      }))
    }),

    withdraw: (id, invitationId, options) => perform(options, (caller) =>
      usherOrganizations.invitations.withdraw(caller, idOf(id), idOf(invitationId))),
  }

  return {
    create: (given: NewUsherOrganization, options?: CallOptions) => perform(options, async (caller) => {
      caller.authorize('organizations:create')
      const { operations } = usherOrganizations
      const organization = operations.readNew(caller, given)
      const { ownerId } = parseOwner(given)
      return copyRow(await operations.create(caller, organization, { ownerId: ownerId?.toLowerCase() }))
    }),

    get: (id: string, options?: CallOptions) =>
      perform(options, async (caller) => copyRow(await usherOrganizations.operations.get(caller, idOf(id)))),

    list: (query: object = {}, options?: CallOptions) => perform(options, async (caller) => {
      caller.requireIdentity()
      const { q, limit, after } = parseQuery(query)
      return show(limit, await usherOrganizations.operations.list(caller, {
        q, limit, after: after && decodeCursor(after),
      }))
    }),

    listOf: (userId: string, options?: CallOptions) => perform(options, async (caller) =>
      (await usherOrganizations.operations.listOf(caller, idOf(userId))).map(copyRow)),

    update: (id: string, changes: PatchOrganization, options?: CallOptions) => perform(options, async (caller) => {
      const { operations } = usherOrganizations
      const parse = (input: unknown) => operations.readChanges(caller, input)
      const given = await parseFor(caller, 'organizations:update', id, parse, changes)
      return copyRow(await operations.update(caller, idOf(id), given))
    }),

    delete: (id, options) => perform(options, (caller) => usherOrganizations.operations.delete(caller, idOf(id))),

    members: Object.freeze(members),
    invitations: Object.freeze(invitations),
  }
}

const show = <Row extends { id: string }>(limit: number, { rows, next }: Page<Row>): UsherPage<Omit<Row, 'rowVersion'>> =>
  ({ data: rows.map(copyRow), page: { next: next && encodeCursor(next), limit } })
