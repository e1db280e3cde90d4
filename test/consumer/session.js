// A host in JavaScript, and a client that logs in, uploads, and uses GraphQL over HTTP and a socket. Prints what it has
// got.
import Fastify from 'fastify'
import usher from 'fastify-usher'

const options = JSON.parse(process.argv[2])
const app = Fastify()
await app.register(usher, { prefix: '/accounts', ...options })
app.get('/mine', { onRequest: app.usher.authenticate }, async (request) => request.actor.role)
const base = `${await app.listen({ port: 0 })}/accounts`
const get = (path, headers) => fetch(base + path, { headers })
const post = (path, body, headers) => fetch(base + path, {
  method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers },
})

const { token } = await (await post('/api/auth/login', options.admin)).json()
const headers = { authorization: `Bearer ${token}` }
const form = new FormData()
form.set('description', 'A greeting')
form.set('file', new Blob(['Hello']), 'hello.txt')
const uploaded = await fetch(`${base}/api/uploads`, { method: 'POST', body: form, headers })
const { fileUrl } = await uploaded.json()
const page = await get('/graphql', { accept: 'text/html' })

const seen = {
  mine: await (await fetch(`${base}/../mine`, { headers })).text(),
  users: (await get('/api/users')).status,
  rejected: (await post('/api/users', { name: '', email: 'x' }, headers)).status,
  created: (await post(
    '/api/users', { name: 'Ada', email: 'ada@example.com', password: 'difference engine' }, headers
  )).status,
  uploaded: uploaded.status,
  file: await (await fetch(new URL(fileUrl, base))).text(),
  query: await (await post('/graphql', { query: '{ users { nodes { name } } }' })).json(),
  socket: await subscribe(),
  graphiql: [page.status, (await page.text()).includes('<title>Usher GraphiQL</title>')],
  reference: [
    (await get('/docs')).status, (await get('/docs/json')).status, (await get('/docs/static/design.css')).status,
  ],
  login: (await get('/login')).status,
}
await app.close()
console.log(JSON.stringify(seen))

// Subscribes to posts over a socket, creates one there, and returns its title as received.
async function subscribe () {
  const socket = new WebSocket(`${base}/graphql`, 'graphql-transport-ws')
  const send = (message) => socket.send(JSON.stringify(message))
  const next = (id, query) => send({ id, type: 'subscribe', payload: { query } })
  socket.onopen = () => send({ type: 'connection_init', payload: headers })
  const { promise, resolve, reject } = Promise.withResolvers()
  socket.onclose = ({ code, reason }) => reject(new Error(`the socket was closed with ${code} ${reason}`))
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data)
    if (message.type === 'connection_ack') {
      next('posts', 'subscription { postCreated { title } }')
      next('post', 'mutation { createPost(input: { title: "Over a socket", content: "text" }) { id } }')
    }
    // The subscription may have started after the post was created.
    if (message.id === 'post' && message.type === 'complete') {
      setTimeout(
        next, 250, 'post', 'mutation { createPost(input: { title: "Over a socket", content: "text" }) { id } }'
      )
    }
    if (message.id === 'posts' && message.type === 'next') resolve(message.payload.data.postCreated.title)
  }
  return promise.finally(() => { socket.onclose = null; socket.close() })
}
