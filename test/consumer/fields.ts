// A host that adds fields to users and organisations, and claims to tokens.
import { Type, type Static } from '@sinclair/typebox'
import Fastify from 'fastify'
import usher, { type Actor, type ShownOrganization, type Usher, type UsherOptions, type UsherUser } from 'fastify-usher'
import type { components, User } from 'fastify-usher/client'

const userFields = Type.Object({
  bio: Type.Optional(Type.String({ 'x-write': 'owner', 'x-read': 'anyone' })),
  plan: Type.Union([Type.Literal('free'), Type.Literal('pro')], { default: 'free' }),
})

const organizationFields = Type.Object({
  website: Type.Optional(Type.String({ 'x-write': 'member' })),
  seats: Type.Integer({ default: 3 }),
})

declare module 'fastify-usher' {
  interface Register {
    userFields: typeof userFields
    organizationFields: typeof organizationFields
    claims: { plan: 'free' | 'pro' }
  }
}

// The client, which may be that of another project.
declare module 'fastify-usher/client' {
  interface Register { userFields: typeof userFields, organizationFields: typeof organizationFields }
}

const options: UsherOptions = {
  userFields,
  organizations: { fields: organizationFields },
  claims: async ({ id, bio, plan }) => ({ plan, length: id.length + (bio?.length ?? 0) }),
}
const app = Fastify()
await app.register(usher, options)
app.get('/reports', { onRequest: app.usher.authenticate }, async ({ actor }) => actor!.claims.plan)

export const planOf = (user: UsherUser): Static<typeof userFields.properties.plan> => user.plan
export const bioOf = (user: UsherUser): string | undefined => user.bio
export const claimOf = ({ claims }: Actor): 'free' | 'pro' | undefined => claims.plan

// @ts-expect-error a field that there is not
export const none = (user: UsherUser) => user.nickname
// @ts-expect-error a field that may be absent
export const bio = (user: UsherUser): string => user.bio
// @ts-expect-error a claim of another type
export const wrong: UsherOptions = { claims: () => ({ plan: 'gold' }) }
// @ts-expect-error a claim is missing
export const missing: UsherOptions = { claims: () => ({}) }
// @ts-expect-error claims are not to be changed
export const change = ({ claims }: Actor) => { claims.plan = 'pro' }
// @ts-expect-error not a schema
export const text: UsherOptions = { userFields: 'bio' }

type Patch = components['schemas']['PatchUser']
export const shown = ({ bio, plan }: User): [string | undefined, 'free' | 'pro' | undefined] => [bio, plan]
export const removed: Patch = { bio: null, plan: 'pro' }
// @ts-expect-error a value that there is not
export const gold: Patch = { plan: 'gold' }
// @ts-expect-error a reader may not see it
export const always = (user: User): 'free' | 'pro' => user.plan

export const seatsOf = async ({ organizations }: Usher, id: string): Promise<number> =>
  (await organizations.update(id, { website: null })).seats
export const seatsShown = ({ seats }: ShownOrganization): number | undefined => seats
// @ts-expect-error a value of another type
export const seatsWrong = ({ organizations }: Usher, id: string) => organizations.update(id, { seats: 'many' })
export const patched: components['schemas']['PatchOrganization'] = { website: null, seats: 4 }
export const site = ({ website }: components['schemas']['Organization']): string | undefined => website
