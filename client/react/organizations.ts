import { unwrap, type components, type UsherClient } from '../index.ts'
import { useSession } from './session.ts'
import { ignoreMissing } from './hooks.ts'
import { refresh, useResource, type Definition, type Used } from './resource.ts'

type Schemas = components['schemas']
export type OwnOrganization = Schemas['OwnOrganization']
export type OrganizationMember = Schemas['Member']
export type OrganizationInvitation = Schemas['Invitation']

export interface OrganizationsActions {
  /** Creates an organisation, whose owner the user is. */
  create (organization: Schemas['CreateOrganization']): Promise<Schemas['Organization']>
  update (id: string, changes: Schemas['PatchOrganization']): Promise<Schemas['Organization']>
  remove (id: string): Promise<void>
  /** Ends the user's own membership. Rejects with the code `LAST_OWNER` if nobody else owns the organisation. */
  leave (id: string): Promise<void>
  /** Sends all calls of this tab for an organisation from now on, or for none. */
  choose (id: string | null): Promise<void>
}

/** What a list has loaded, and where the next page begins. */
interface Listed<Item> { readonly items: Item[], readonly next: string | undefined }
type Answer<Item> = { data?: Item[], error?: unknown, response: Response }

export interface MoreActions {
  /** Loads the next page, and shows it after the others. */
  loadMore (): Promise<void>
}

export interface MembersActions extends MoreActions {
  /** Gives a member another role. */
  setRole (userId: string, role: string): Promise<OrganizationMember>
  remove (userId: string): Promise<void>
}

export interface InvitationsActions extends MoreActions {
  /** Has an invitation mailed. It replaces a pending one for the same address. */
  invite (invitation: Schemas['CreateInvitation']): Promise<void>
  withdraw (id: string): Promise<void>
}

const organizations: Definition<OwnOrganization[], OrganizationsActions> = {
  load: (client, signal) => unwrap(client.get('/api/auth/organizations', { signal })),
  actions: (client, resource) => ({
    async create (body) {
      const created = await unwrap(client.post('/api/organizations', { body }))
      await resource.refresh()
      return created
    },
    async update (id, body) {
      const changed = await unwrap(client.patch('/api/organizations/{id}', { params: { path: { id } }, body }))
      await resource.refresh()
      return changed
    },
    async remove (id) {
      await ignoreMissing(client.delete('/api/organizations/{id}', { params: { path: { id } } }))
      await resource.refresh()
    },
    async leave (id) {
      const userId = client.session.current.user?.id ?? ''
      await ignoreMissing(client.delete('/api/organizations/{id}/members/{userId}', { params: { path: { id, userId } } }))
      await resource.refresh()
    },
    choose: (id) => client.setOrganization(id),
  }),
}

/** Returns the organisations of the user, with the role of the user in each, and the one for which this tab acts. */
export function useOrganizations (client?: UsherClient) {
  const { organization = null } = useSession(client)
  return { ...useResource(organizations, client), current: organization }
}

const PAGE = 50

async function readPage<Item> (
  read: (query: { limit: number, after?: string }) => PromiseLike<Answer<Item>>, after?: string
): Promise<Listed<Item>> {
  const result = await read({ limit: PAGE, ...after !== undefined && { after } })
  const link = result.response.headers.get('Link') ?? ''
  return { items: await unwrap(result) as Item[], next: /[?&]after=([\w-]+)[^>]*>; rel="next"/.exec(link)?.[1] }
}

// Returns what shows and loads the pages of a list.
function listOf<Item, Actions> (
  read: (
    client: UsherClient, query: { limit: number, after?: string }, signal?: AbortSignal
  ) => PromiseLike<Answer<Item>>,
  actions: (client: UsherClient, resource: { refresh (): Promise<void> }) => Actions
): Definition<Listed<Item>, Actions & MoreActions> {
  return {
    // As much as is shown.
    async load (client, signal, former) {
      const wanted = former?.items.length ?? 0
      let page = await readPage<Item>((query) => read(client, query, signal))
      while (page.items.length < wanted && page.next !== undefined) {
        const { items, next } = await readPage<Item>((query) => read(client, query, signal), page.next)
        page = { items: [...page.items, ...items], next }
      }
      return page
    },
    actions: (client, resource) => ({
      ...actions(client, resource),
      async loadMore () {
        const { data } = resource.current()
        if (data?.next === undefined) return
        const { items, next } = await readPage<Item>((query) => read(client, query), data.next)
        // It may have been loaded again meanwhile.
        if (resource.current().data === data) resource.update({ items: [...data.items, ...items], next })
      },
    }),
  }
}

const members = definedById((id) => listOf<OrganizationMember, Omit<MembersActions, 'loadMore'>>(
  (client, query, signal) =>
    client.get('/api/organizations/{id}/members', { params: { path: { id }, query }, ...signal && { signal } }),
  (client, resource) => ({
    async setRole (userId, role) {
      const params = { path: { id, userId } }
      const member = await unwrap(client.patch('/api/organizations/{id}/members/{userId}', { params, body: { role } }))
      await Promise.all([resource.refresh(), refresh(client, organizations)])
      return member
    },
    async remove (userId) {
      const params = { path: { id, userId } }
      await ignoreMissing(client.delete('/api/organizations/{id}/members/{userId}', { params }))
      await Promise.all([resource.refresh(), refresh(client, organizations)])
    },
  })
))

const invitations = definedById((id) => listOf<OrganizationInvitation, Omit<InvitationsActions, 'loadMore'>>(
  (client, query, signal) =>
    client.get('/api/organizations/{id}/invitations', { params: { path: { id }, query }, ...signal && { signal } }),
  (client, resource) => ({
    async invite (body) {
      await unwrap(client.post('/api/organizations/{id}/invitations', { params: { path: { id } }, body }))
      await resource.refresh()
    },
    async withdraw (invitationId) {
      const params = { path: { id, invitationId } }
      await ignoreMissing(client.delete('/api/organizations/{id}/invitations/{invitationId}', { params }))
      await resource.refresh()
    },
  })
))

// Components that use the list of the same organisation share it, so each list has one definition.
function definedById<Data, Actions> (
  define: (id: string) => Definition<Data, Actions>
): (id: string) => Definition<Data, Actions> {
  const known = new Map<string, Definition<Data, Actions>>()
  return (id) => {
    const definition = known.get(id) ?? define(id)
    known.set(id, definition)
    return definition
  }
}

function shown<Item, Actions> ({ data, ...rest }: Used<Listed<Item>, Actions>) {
  return { ...rest, data: data?.items, hasMore: data?.next !== undefined }
}

/** Returns the members of an organisation, in the order in which their accounts were created. */
export const useMembers = (
  organizationId: string, client?: UsherClient
): Used<OrganizationMember[], MembersActions> & { hasMore: boolean } =>
  shown(useResource(members(organizationId), client))

/** Returns the pending invitations of an organisation. `error` has the status 403 for who may not see them. */
export const useInvitations = (
  organizationId: string, client?: UsherClient
): Used<OrganizationInvitation[], InvitationsActions> & { hasMore: boolean } =>
  shown(useResource(invitations(organizationId), client))
