// Mounts the plugin, and prints the statuses of one response of each part.
import Fastify from 'fastify'
import usher from 'fastify-usher'

const options = JSON.parse(process.argv[2])
const app = Fastify()
await app.register(usher, options)
app.get('/mine', { onRequest: app.usher.authenticate }, async (request) => request.actor.role)
const login = await app.inject({ method: 'POST', url: '/accounts/api/auth/login', payload: options.admin })
const answers = [
  await app.inject('/accounts/api/users'),
  await app.inject({ method: 'POST', url: '/accounts/graphql', payload: { query: '{ users { nodes { name } } }' } }),
  await app.inject({ url: '/mine', headers: { authorization: `Bearer ${login.json().token}` } }),
  await app.inject('/accounts/docs/schema.graphql'),
]
await app.close()
console.log(JSON.stringify(answers.map(({ statusCode }) => statusCode)))
