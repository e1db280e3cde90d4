// PostGraphile on Usher's own tables, as its documentation starts it for production. It is no dependency: "npm install
// --no-save postgraphile@5" installs it for a comparison.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const load = (name: string) => import(name)
const [{ postgraphile }, { PostGraphileAmberPreset }, { makePgService }, { grafserv }] = await Promise.all(
  ['', '/presets/amber', '/adaptors/pg', '/grafserv/node'].map((path) => load(`postgraphile${path}`))
)
const service = postgraphile({
  extends: [PostGraphileAmberPreset],
  pgServices: [makePgService({
    connectionString: process.env['DATABASE_URL'], schemas: ['usher'], poolConfig: { max: 10 },
  })],
  grafserv: { graphqlPath: '/graphql', watch: false, graphiql: false },
  grafast: { explain: false },
})
const server = createServer()
service.createServ(grafserv).addTo(server)
await service.getSchema()
server.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
