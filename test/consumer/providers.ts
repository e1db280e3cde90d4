// Guards leave the types of a route to its type provider, as a host sees them.
import { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import { Type } from '@sinclair/typebox'
import Fastify from 'fastify'
import { serializerCompiler, validatorCompiler, type ZodTypeProvider } from 'fastify-type-provider-zod'
import usher from 'fastify-usher'
import { z } from 'zod'

const databaseUrl = process.env['DATABASE_URL']

const zod = Fastify().withTypeProvider<ZodTypeProvider>()
zod.setValidatorCompiler(validatorCompiler)
zod.setSerializerCompiler(serializerCompiler)
await zod.register(usher, { databaseUrl })
const ofZod = { body: z.object({ title: z.string() }), querystring: z.object({ times: z.coerce.number() }) }
const { authenticate, identify, allow, requireRole } = zod.usher
zod.post('/a', { schema: ofZod, onRequest: authenticate, preHandler: authenticate }, async ({ body, query }) => body.title.repeat(query.times))
zod.post('/b', { schema: ofZod, onRequest: identify }, async ({ body, query }) => body.title.repeat(query.times))
zod.post('/c', { schema: ofZod, onRequest: allow('users:create') }, async ({ body, query }) => body.title.repeat(query.times))
zod.post('/d', { schema: ofZod, onRequest: [requireRole('admin')] }, async ({ body, query }) => body.title.repeat(query.times))
zod.setErrorHandler(zod.usher.errorHandler)
const hooks = { onRequest: authenticate }
zod.route({ method: 'POST', url: '/e', schema: ofZod, ...hooks, handler: async ({ body }) => body.title.length })
// @ts-expect-error a member that the schema does not have
zod.post('/f', { schema: ofZod, onRequest: authenticate }, async ({ body }) => body.other)

const typebox = Fastify().withTypeProvider<TypeBoxTypeProvider>()
await typebox.register(usher, { databaseUrl })
const ofTypebox = { body: Type.Object({ title: Type.String() }), querystring: Type.Object({ times: Type.Integer() }) }
typebox.post('/a', { schema: ofTypebox, onRequest: typebox.usher.authenticate }, async ({ body, query }) => body.title.repeat(query.times))
typebox.post('/b', { schema: ofTypebox, onRequest: typebox.usher.identify }, async ({ body, query }) => body.title.repeat(query.times))
typebox.post('/c', { schema: ofTypebox, preHandler: typebox.usher.allow('users:create') }, async ({ body }) => body.title.length)
typebox.post('/d', { schema: ofTypebox, onRequest: [typebox.usher.requireRole('admin')] }, async ({ body }) => body.title.length)
// @ts-expect-error a member that the schema does not have
typebox.post('/e', { schema: ofTypebox, onRequest: typebox.usher.authenticate }, async ({ body }) => body.other)
