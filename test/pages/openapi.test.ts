import t from 'tap'
import { createUsher, sharedUsher } from '../helpers/app.ts'
import { openDocument, type Answer } from '../helpers/openapi.ts'

// Every response to `inject` is checked by the OpenAPI document (test/helpers/openapi.ts). The first test is about that
// check.
const usher = await sharedUsher()
const { app, inject, admin } = usher

t.test('8 a response that differs from the document is noticed', async (t) => {
  const check = await openDocument(app, '')
  const at = '2026-01-01T00:00:00Z'
  const user = { id: 'x', name: 'Ada', role: 'user', kind: 'person', createdAt: at, updatedAt: at }
  const json = { 'content-type': 'application/json; charset=utf-8' }
  const problemOf = (body: unknown, answer: Partial<Answer> = {}) =>
    check({ method: 'GET', url: '/api/users/x', status: 200, headers: json, body: JSON.stringify(body), ...answer })
  t.equal(problemOf(user), undefined)
  t.match(
    problemOf({ ...user, name: undefined }), "GET /api/users/{id} 200 OK: body must have required property 'name'"
  )
  t.match(problemOf({ ...user, createdAt: 'yesterday' }), 'body/createdAt must match format "date-time"')
  t.match(problemOf(user, { status: 409 }), 'the status is not declared')
  t.match(problemOf(user, { headers: { ...json, link: '<x>' } }), 'undeclared headers: link')
  t.match(
    problemOf(user, { headers: { 'content-type': 'application/xml' } }),
    'the media type application/xml is not declared'
  )
  t.match(problemOf([{ name: 'Ada' }], { url: '/api/users?fields=name' }), "body/0 must have required property 'id'")
  t.match(problemOf({}, { url: '/api/other' }), 'GET /api/other 200 OK: the document has no such operation')
  t.equal(problemOf({ error: 'Not found' }, { url: '/api/other', status: 404 }), undefined)
  t.equal(problemOf({}, { url: '/graphql' }), undefined, 'the document does not describe GraphQL')
})

t.test('8 the document has the responses of every operation to bodies that it cannot read', async (t) => {
  const { paths } = (await inject('GET', '/docs/json')).json<{ paths: Record<string, object> }>()
  const bodies = {
    'not JSON': [{ 'content-type': 'application/json' }, '{'],
    'another type': [{ 'content-type': 'application/xml' }, '<x/>'],
    encoded: [{ 'content-type': 'application/json', 'content-encoding': 'gzip' }, '\x1f\x8b'],
    'too large': [{ 'content-type': 'application/json' }, `"${'x'.repeat(2 ** 21)}"`],
  } as const
  const statuses = new Set<number>()
  for (const [path, operations] of Object.entries(paths)) {
    for (const method of Object.keys(operations).map((name) => name.toUpperCase())) {
      if (method === 'GET') continue
      // Ends no session, and finds no record.
      const url = path.replaceAll(/\{\w+\}/g, '00000000-0000-7000-8000-000000000000')
      for (const [name, [headers, payload]] of Object.entries(bodies)) {
        const response = await inject(method as 'POST', url, { headers: { ...admin.headers, ...headers }, payload })
        statuses.add(response.statusCode)
        t.ok(
          response.statusCode >= 400 && response.statusCode < 500, `${method} ${path}, ${name}: ${response.statusCode}`
        )
      }
    }
  }
  for (const status of [400, 413, 415]) t.ok(statuses.has(status), `${status}`)
})

t.test('8 the document has the headers of a list that is read strictly, whatever the response is', async (t) => {
  const headers = { ...admin.headers, prefer: 'handling=strict' }
  t.equal((await inject('GET', '/api/users?limit=1&unknown=1', { headers })).statusCode, 400)
  await usher.createUser()
  const { headers: { etag, link } } = await inject('GET', '/api/users?limit=1', { headers })
  t.type(link, 'string')
  t.equal(
    (await inject('GET', '/api/users?limit=1', { headers: { ...headers, 'if-none-match': `${etag}` } })).statusCode, 304
  )
  const failed = await inject('GET', '/api/users?limit=1', { headers: { ...headers, 'if-match': '"other"' } })
  t.strictSame([failed.statusCode, failed.headers.link], [412, undefined], 'a failure has no next page')
})

t.test('8 with hooks of the host, changes may have the status with which a hook rejects them', async (t) => {
  const { inject, admin, createUser } = await createUsher(t, {
    hooks: { beforeUserDelete: () => { throw Object.assign(new Error('Not today'), { statusCode: 418 }) } },
  })
  const { id } = await createUser()
  t.equal((await inject('DELETE', `/api/users/${id}`, { headers: admin.headers })).statusCode, 418)
  const { paths, components } = (await inject('GET', '/docs/json')).json()
  t.strictSame(
    paths['/api/users/{id}'].delete.responses['4XX'], { $ref: '#/components/responses/RejectedByHost' }
  )
  t.match(components.responses.RejectedByHost, { description: 'A function of the host has rejected the request' })
  t.notOk('4XX' in paths['/api/users/{id}'].get.responses)
})
