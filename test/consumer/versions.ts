// A host with TypeBox 1 and GraphQL 17, whose types are not those with which Usher was compiled.
import Fastify from 'fastify'
import usher, { type UsherOptions, type UsherUser } from 'fastify-usher'
import { parse, type GraphQLResolveInfo } from 'graphql'
import Type from 'typebox'

const userFields = Type.Object({
  bio: Type.Optional(Type.String({ 'x-write': 'owner', 'x-read': 'anyone' })),
  plan: Type.Union([Type.Literal('free'), Type.Literal('pro')], { default: 'free' }),
  tags: Type.Array(Type.Object({ name: Type.String(), rank: Type.Optional(Type.Integer()) }), { default: [] }),
})

declare module 'fastify-usher' {
  interface Register { userFields: typeof userFields }
}

const greeting = (_: unknown, __: unknown, ___: unknown, { fieldName }: GraphQLResolveInfo) => fieldName
const options: UsherOptions = {
  userFields,
  graphql: { typeDefs: parse('extend type Query { greeting: String! }'), resolvers: { Query: { greeting } } },
}
const app = Fastify()
await app.register(usher, options)
await app.usher.users.create({ name: 'Ada', email: 'ada@example.com', plan: 'pro' })

export const planOf = ({ plan }: UsherUser): 'free' | 'pro' => plan
export const bioOf = ({ bio }: UsherUser): string | undefined => bio
export const rankOf = ({ tags }: UsherUser): number | undefined => tags[0]?.rank
// @ts-expect-error a field that there is not
export const none = (user: UsherUser) => user.nickname
// @ts-expect-error a field that may be absent
export const bio = (user: UsherUser): string => user.bio
// @ts-expect-error a plan that there is not
await app.usher.users.create({ name: 'Ada', email: 'ada@example.com', plan: 'gold' })
// @ts-expect-error not a schema
export const text: UsherOptions = { userFields: 'bio' }
