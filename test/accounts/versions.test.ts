import t from 'tap'
import { createUsher } from '../helpers/app.ts'

const V1 = 'application/vnd.api.v1+json'
const V2 = 'application/vnd.api.v2+json'
// What Fastify adds to the content type of JSON.
const CHARSET = '; charset=utf-8'
const JSON_TYPE = `application/json${CHARSET}`

t.test('3 versions of GET /api/users', async (t) => {
  const { app, inject, createUser, admin } = await createUsher(t)
  const user = await createUser()
  const list = (accept?: string, query = '') =>
    inject('GET', `/api/users${query}`, { headers: accept === undefined ? {} : { accept } })

  t.test('3.1 Accept: application/vnd.api.v2+json returns 200 with an object whose version is a string (given)', async (t) => {
    const response = await list(V2)
    t.equal(response.statusCode, 200)
    t.equal(response.headers['content-type'], V2 + CHARSET)
    const { version, data, page, ...rest } = response.json()
    t.equal(version, '2')
    t.same(data, (await list()).json())
    t.same(page, { next: null, limit: 100 })
    t.same(rest, {})
  })

  t.test('3.1 page.next is the cursor of the next page, as in the Link header', async (t) => {
    const first = await list(V2, '?limit=1')
    const { data, page } = first.json()
    t.same(data.map(({ id }: { id: string }) => id), [user.id])
    t.equal(page.limit, 1)
    t.equal(first.headers.link, `</api/users?limit=1&after=${page.next}>; rel="next"`)
    const second = (await list(V2, `?limit=1&after=${page.next}`)).json()
    t.same(second.data.map(({ id }: { id: string }) => id), [admin.id])
    t.same(second.page, { next: null, limit: 1 })
  })

  t.test('3.2 without Accept, and for */*, application/json and version 1, the response is the bare array (given)', async (t) => {
    for (const accept of [undefined, '*/*', 'application/json', V1]) {
      const response = await list(accept)
      t.equal(response.statusCode, 200)
      t.same(response.json().map(({ id }: { id: string }) => id), [user.id, admin.id], accept ?? 'none')
    }
  })

  t.test('3.2 a type that is not a version gets version 1 as well', async (t) => {
    for (const accept of ['text/html', 'image/png, text/*;q=0.1', 'application/vnd.api.v3+json, text/html']) {
      const response = await list(accept)
      t.equal(response.headers['content-type'], JSON_TYPE, accept)
      t.ok(Array.isArray(response.json()), accept)
    }
  })

  t.test('3.3 quality values count, and the content type is the versioned one', async (t) => {
    const chosen: Record<string, string> = {
      '*/*': JSON_TYPE,
      'application/*': JSON_TYPE,
      '': JSON_TYPE,
      ' ': JSON_TYPE,
      'application/json': JSON_TYPE,
      [V1]: V1,
      [V2]: V2,
      [V2.toUpperCase()]: V2,
      [`${V2}; charset=utf-8`]: V2,
      'application/json;charset=UTF-8': JSON_TYPE,
      [`${V1}, ${V2}`]: V1,
      [`${V2}, ${V1}`]: V2,
      [`${V1};q=0.5, ${V2};q=0.9`]: V2,
      [`${V1};q=0.9, ${V2};q=0.5`]: V1,
      [`${V2};q=0.1, application/json`]: JSON_TYPE,
      [`${V2}, */*;q=0.1`]: V2,
      [`*/*;q=0.1,${V2};q=0.2`]: V2,
      [`${V2};q=0, */*`]: JSON_TYPE,
      'application/json;q=0, */*': V1,
      [`application/json;q=0, ${V1};q=0, */*`]: V2,
      'application/vnd.api.v3+json, */*': JSON_TYPE,
      [`application/vnd.api.v3+json, ${V2};q=0.5`]: V2,
      'text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8': JSON_TYPE,
      // What Java sends.
      '*': JSON_TYPE,
      '*;q=0.8': JSON_TYPE,
      'text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2': JSON_TYPE,
      [`${V2}, *;q=0.1`]: V2,
      [`application/json;q=0, ${V1};q=0, *`]: V2,
    }
    for (const [accept, type] of Object.entries(chosen)) {
      const response = await list(accept)
      t.equal(response.statusCode, 200, accept)
      t.equal(response.headers['content-type'], type === JSON_TYPE ? type : type + CHARSET, accept)
      t.equal(response.headers.vary, 'Accept', accept)
      t.equal(Array.isArray(response.json()), type !== V2, accept)
    }
  })

  t.test('3.3 if only unknown versions are accepted, the response is 406 and names the known ones', async (t) => {
    const refused = [
      'application/vnd.api.v3+json', 'Application/Vnd.Api.V3+JSON', 'application/vnd.api.v0+json',
      'application/vnd.api.v22+json', 'application/vnd.api.+json', `${V1};q=0`, '*/*;q=0', '*;q=0', ';;;,,,',
      'application/vnd.api.v3+json, application/vnd.api.v4+json;q=0.5',
    ]
    for (const accept of refused) {
      const response = await list(accept)
      t.equal(response.statusCode, 406, accept)
      t.equal(response.headers['content-type'], JSON_TYPE)
      t.equal(response.headers.vary, 'Accept')
      t.same(response.json(), {
        error: `None of the accepted media types is available. Available: application/json, ${V1}, ${V2}`,
        code: 'NOT_ACCEPTABLE',
      }, accept)
    }
  })

  t.test('3.3 errors of the query also have Vary: Accept, and 406 takes precedence over them', async (t) => {
    const wrong = await list(V2, '?limit=0')
    t.same([wrong.statusCode, wrong.headers.vary, wrong.headers['content-type']], [400, 'Accept', JSON_TYPE])
    t.equal((await list('application/vnd.api.v3+json', '?limit=0')).statusCode, 406)
  })

  t.test('3.3 HEAD negotiates like GET', async (t) => {
    const response = await app.inject({ method: 'HEAD', url: '/api/users?limit=1', headers: { accept: V2 } })
    t.same([response.statusCode, response.headers['content-type'], response.headers.vary, response.body], [
      200, V2 + CHARSET, 'Accept', '',
    ])
    t.match(response.headers.link, /rel="next"/)
  })

  t.test('3.3 an Accept header of 16 KiB is parsed quickly', async (t) => {
    const before = process.cpuUsage()
    const response = await list('a/b;q=0.1,'.repeat(1600))
    t.equal(response.statusCode, 200)
    t.ok(process.cpuUsage(before).user < 500_000, 'microseconds of processor time')
  })

  t.test('3.3 paths contain no version', async (t) => {
    for (const path of ['/api/v1/users', '/api/v2/users', '/v2/api/users']) {
      t.equal((await inject('GET', path)).statusCode, 404)
    }
  })
})
