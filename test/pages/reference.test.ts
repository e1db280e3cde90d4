import { readFileSync } from 'node:fs'
import helmet from '@fastify/helmet'
import fastifyStatic from '@fastify/static'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import { Type } from '@sinclair/typebox'
import Fastify from 'fastify'
import { buildSchema } from 'graphql'
import t from 'tap'
import usher from '../../app.ts'
import { lintApi } from '../../scripts/lint-api.ts'
import { createUsher, sharedUsher } from '../helpers/app.ts'
import { nightly } from '../helpers/nightly.ts'
import { resolveReply } from '../helpers/openapi.ts'

interface Response {
  description: string
  headers?: object
  content?: Record<string, { schema: object, example?: Record<string, unknown> }>
}

interface Operation {
  operationId: string
  security: Record<string, string[]>[]
  parameters?: { name: string, in: string, required: boolean }[]
  requestBody?: {
    required: boolean, content: Record<string, { schema: { $ref: string }, example?: Record<string, string> }>
  }
  responses: Record<string, Response | { $ref: string }>
}

interface Document {
  openapi: string
  info: { title: string, description: string }
  servers: object[]
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, object>, responses: Record<string, Response>, securitySchemes: object }
}

const ERROR = { schema: { $ref: '#/components/schemas/Error' } }
const LOGIN_FAILURE = { schema: { $ref: '#/components/schemas/LoginFailure' } }
const ERRORS = { schema: { $ref: '#/components/schemas/Errors' } }
const CONFIRMATION_ERRORS = { schema: { $ref: '#/components/schemas/ConfirmationErrors' } }

const { inject, admin, options } = await sharedUsher()

const articleOf = (body: string, id: string): string => new RegExp(`<article class="operation" id="operation-${id}">[^]*?</article>`).exec(body)![0]

t.test('8 GET /docs/json', async (t) => {
  const response = await inject('GET', '/docs/json')
  const document = response.json<Document>()
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })))
  const responsesOf = ({ responses }: Operation): Record<string, Response> => Object.fromEntries(
    Object.entries(responses).map(([status, response]) => [status, resolveReply(document, response)])
  )

  t.test('8 the document is OpenAPI 3.1 and passes a public linter', async (t) => {
    t.match(response.headers['content-type'], /^application\/json/)
    t.match(document.openapi, /^3\.1\./)
    t.strictSame(await lintApi(document), [])
    const { summary, ...rest } = document.paths['/api/users']!.get as Operation & { summary: string }
    const mistaken = { ...document, paths: { ...document.paths, '/api/users': { get: rest } } }
    t.match(await lintApi(mistaken), [/summary/], 'which finds mistakes')
    t.strictSame(document.servers, [{ url: '/' }])
    t.match(document.info, { title: 'Usher', version: /^\d+\.\d+\.\d+/, description: '(/graphql)' })
  })

  t.test('8 docs/endpoints.md has all headers of the document, so that CORS allows them', async (t) => {
    const endpoints = readFileSync(new URL('../../docs/endpoints.md', import.meta.url), 'utf8')
    const [, section = ''] = /^### Headers\n([^]*?)^### /m.exec(endpoints)!
    const [requests = '', responses = ''] = section.split('| of responses |')
    const sent = operations.flatMap(({ operation: { parameters = [] } }) =>
      parameters.filter((parameter) => parameter.in === 'header'))
    const answers = operations.flatMap(({ operation }) => Object.values(responsesOf(operation)))
    const read = answers.flatMap(({ headers = {} }) => Object.keys(headers))
    t.ok(sent.length > 0 && read.length > 0)
    const isMissing = (text: string) => (name: string) => !new RegExp(`\`${name}[\`:]`, 'i').test(text)
    t.same(sent.map(({ name }) => name).filter(isMissing(requests)), [])
    // The browser keeps this one from scripts.
    t.same(read.filter((name) => name !== 'Set-Cookie').filter(isMissing(responses)), [])
  })

  t.test('8 it lists each operation with its statuses and its authentication', async (t) => {
    t.strictSame(Object.fromEntries(operations.map(({ name, operation }) =>
      [name, `${Object.keys(operation.responses).join(' ')} ${operation.security.flatMap(Object.keys).join(' or ')}`])),
    {
      'GET /health/live': '200 500 503 ',
      'GET /health/ready': '200 500 503 ',
      'GET /.well-known/jwks.json': '200 304 412 500 503 ',
      'POST /api/auth/login': '200 400 401 408 413 415 429 500 503 ',
      'GET /.well-known/webauthn': '200 304 412 500 503 ',
      'POST /api/auth/passkeys/options': '200 400 401 403 408 409 413 415 500 503 bearer',
      'POST /api/auth/passkeys': '201 400 401 403 408 409 410 413 415 422 500 503 bearer',
      'GET /api/auth/passkeys': '200 304 401 403 412 500 503 bearer',
      'PATCH /api/auth/passkeys/{id}': '200 400 401 403 404 408 413 415 500 503 bearer',
      'DELETE /api/auth/passkeys/{id}': '204 400 401 403 404 408 409 413 415 500 503 bearer',
      'GET /api/users/{id}/passkeys': '200 304 401 403 404 412 500 503 bearer',
      'DELETE /api/users/{id}/passkeys/{passkeyId}': '204 400 401 403 404 408 409 413 415 500 503 bearer',
      'POST /api/auth/login/passkey/options': '200 400 408 409 413 415 429 500 503 ',
      'POST /api/auth/login/passkey': '200 400 401 408 409 413 415 429 500 503 ',
      'POST /api/auth/step-up/options': '200 400 401 403 408 409 413 415 500 503 bearer',
      'POST /api/auth/keys': '201 400 401 403 404 408 409 413 415 500 503 bearer',
      'GET /api/auth/keys': '200 304 401 403 412 500 503 bearer',
      'GET /api/auth/keys/{id}': '200 401 403 404 500 503 bearer',
      'DELETE /api/auth/keys/{id}': '204 400 401 403 404 408 413 415 500 503 bearer',
      'POST /api/users/{id}/keys': '201 400 401 403 404 408 409 413 415 500 503 bearer',
      'GET /api/users/{id}/keys': '200 304 401 403 404 412 500 503 bearer',
      'GET /api/users/{id}/keys/{keyId}': '200 401 403 404 500 503 bearer',
      'DELETE /api/users/{id}/keys/{keyId}': '204 400 401 403 404 408 413 415 500 503 bearer',
      'GET /api/auth/providers': '200 304 412 500 503 ',
      'GET /api/auth/settings': '200 304 412 500 503 ',
      'GET /api/auth/providers/{id}/start': '303 400 401 404 429 500 503 ',
      'GET /api/auth/providers/{id}/callback': '303 400 401 403 404 409 429 500 503 ',
      'POST /api/auth/providers/{id}/callback': '303 400 401 404 408 413 415 500 503 ',
      'POST /api/auth/providers/{id}/logout': '200 400 404 408 413 415 429 500 503 ',
      'POST /api/auth/providers/{id}/link': '200 400 401 403 404 408 413 415 500 503 bearer',
      'POST /api/auth/providers/{id}/step-up': '200 400 401 403 404 408 413 415 500 503 bearer',
      'GET /api/auth/identities': '200 304 401 403 412 500 503 bearer',
      'DELETE /api/auth/identities/{id}': '204 400 401 403 404 408 409 413 415 500 503 bearer',
      'GET /api/users/{id}/identities': '200 304 401 403 404 412 500 503 bearer',
      'DELETE /api/users/{id}/identities/{identityId}': '204 400 401 403 404 408 409 413 415 500 503 bearer',
      'POST /api/auth/login/second-factor': '200 400 401 403 408 409 413 415 429 500 503 ',
      'POST /api/auth/step-up': '200 400 401 403 408 409 413 415 429 500 503 bearer',
      'GET /api/auth/second-factor': '200 401 403 500 503 bearer',
      'POST /api/auth/totp': '200 400 401 403 408 409 413 415 500 503 bearer',
      'DELETE /api/auth/totp': '204 400 401 403 404 408 413 415 500 503 bearer',
      'POST /api/auth/totp/confirm': '200 400 401 403 404 408 409 413 415 500 503 bearer',
      'POST /api/auth/recovery-codes': '200 400 401 403 404 408 413 415 500 503 bearer',
      'POST /api/auth/refresh': '200 400 401 403 408 413 415 429 500 503 session',
      'POST /api/auth/logout': '204 400 401 403 408 413 415 500 503 bearer or session',
      'GET /api/protected': '200 401 403 500 503 bearer',
      'GET /api/auth/sessions': '200 304 401 403 412 500 503 bearer',
      'DELETE /api/auth/sessions': '204 400 401 403 408 413 415 500 503 bearer',
      'DELETE /api/auth/sessions/{id}': '204 400 401 403 404 408 413 415 500 503 bearer',
      'GET /api/users/{id}/sessions': '200 304 401 403 404 412 500 503 bearer',
      'DELETE /api/users/{id}/sessions': '204 400 401 403 404 408 413 415 500 503 bearer',
      'DELETE /api/users/{id}/sessions/{sessionId}': '204 400 401 403 404 408 413 415 500 503 bearer',
      'PUT /api/auth/password': '204 400 401 403 408 413 415 429 500 503 bearer',
      'POST /api/auth/password-reset': '202 400 408 413 415 429 500 503 ',
      'POST /api/auth/password-reset/check': '200 400 408 413 415 500 503 ',
      'POST /api/auth/password-reset/confirm': '204 400 408 413 415 500 503 ',
      'POST /api/users/{id}/email-verification': '202 400 401 403 404 408 409 413 415 429 500 503 bearer',
      'POST /api/auth/email-verification/check': '204 400 408 413 415 500 503 bearer',
      'POST /api/auth/email-verification/confirm': '204 400 403 408 409 413 415 500 503 bearer',
      'POST /api/auth/undo/check': '204 400 408 413 415 500 503 ',
      'POST /api/auth/undo': '204 400 408 409 413 415 500 503 ',
      'POST /api/users/{id}/invitation': '202 400 401 403 404 408 409 410 413 415 422 500 503 bearer',
      'GET /api/audit': '200 304 400 401 403 412 500 503 bearer',
      'GET /api/admin/overview': '200 401 403 500 503 bearer',
      'GET /api/admin/settings': '200 401 403 500 503 bearer',
      'GET /api/admin/keys': '200 400 401 403 500 503 bearer',
      'GET /api/admin/deliveries': '200 400 401 403 500 503 bearer',
      'POST /api/admin/deliveries/{id}/retry': '204 400 401 403 404 408 413 415 500 503 bearer',
      'DELETE /api/admin/deliveries/{id}': '204 400 401 403 404 408 413 415 500 503 bearer',
      'GET /api/users': '200 304 400 401 403 406 412 500 503 ',
      'POST /api/users': '201 400 401 403 408 409 410 413 415 422 500 503 bearer',
      'GET /api/users/{id}': '200 304 401 403 404 412 500 503 ',
      'PUT /api/users/{id}': '200 400 401 403 404 408 409 412 413 415 429 500 503 bearer',
      'PATCH /api/users/{id}': '200 400 401 403 404 408 409 412 413 415 429 500 503 bearer',
      'DELETE /api/users/{id}': '204 400 401 403 404 408 409 412 413 415 500 503 bearer',
      'GET /api/users/{id}/export': '200 401 403 404 429 500 503 bearer',
      'POST /api/uploads': '200 400 401 403 408 409 410 413 415 422 500 503 507 bearer',
      'GET /api/uploads': '200 304 400 401 403 412 500 503 bearer',
      'GET /api/uploads/usage': '200 401 403 500 503 bearer',
      'GET /api/uploads/{id}': '200 206 304 307 400 401 403 404 412 416 500 503 ',
      'OPTIONS /api/uploads/resumable': '204 400 408 413 415 500 503 ',
      'POST /api/uploads/resumable': '201 400 401 403 408 409 410 412 413 415 422 423 429 460 500 503 507 bearer',
      'GET /api/uploads/resumable': '200 401 403 412 500 503 bearer',
      'GET /api/uploads/resumable/{id}': '200 401 403 404 412 500 503 bearer',
      'PATCH /api/uploads/resumable/{id}':
        '200 204 400 401 403 404 408 409 412 413 415 423 460 500 503 507 bearer',
      'DELETE /api/uploads/resumable/{id}': '204 400 401 403 404 408 412 413 415 500 503 bearer',
      'GET /api/uploads/{id}/record': '200 304 401 403 404 412 500 503 bearer',
      'PATCH /api/uploads/{id}': '200 400 401 403 404 408 412 413 415 500 503 bearer',
      'DELETE /api/uploads/{id}': '204 400 401 403 404 408 412 413 415 500 503 bearer',
      'POST /api/uploads/{id}/links': '201 400 401 403 404 408 409 413 415 500 503 bearer',
      'GET /api/uploads/{id}/links': '200 401 403 404 500 503 bearer',
      'DELETE /api/uploads/{id}/links/{linkId}': '204 400 401 403 404 408 413 415 500 503 bearer',
      'GET /api/posts': '200 304 400 401 403 412 500 503 ',
      'POST /api/posts': '201 400 401 403 404 408 409 410 413 415 422 429 500 503 bearer',
      'GET /api/posts/events': '200 400 401 403 410 429 500 503 ',
      'GET /api/posts/drafts': '200 304 400 401 403 412 500 503 bearer',
      'GET /api/posts/{id}': '200 304 401 403 404 412 500 503 ',
      'PATCH /api/posts/{id}': '200 400 401 403 404 408 409 412 413 415 500 503 bearer',
      'DELETE /api/posts/{id}': '204 400 401 403 404 408 412 413 415 500 503 bearer',
      'GET /api/redirect': '302 500 503 ',
    })
    t.strictSame(document.components.securitySchemes, {
      bearer: {
        type: 'http', scheme: 'bearer', description: 'The `token` in the response to a login, or an API key',
      },
      session: { type: 'apiKey', in: 'cookie', name: 'usher_session', description: 'The cookie that a login sets' },
    })
  })

  t.test('8 each operation has a unique id, a known tag, and a description of every response', async (t) => {
    const names = operations.map(({ operation }) => operation.operationId)
    t.equal(new Set(names).size, operations.length)
    t.strictSame(names.filter((name) => !/^[a-z]+([A-Z][a-z]*)*$/.test(name)), [])
    for (const name of ['logIn', 'listSessions', 'endSession', 'createUser', 'completeLogin', 'resetPassword']) {
      t.ok(names.includes(name), name)
    }
    const tags = document.tags.map(({ name }) => name)
    for (const { name, operation } of operations) {
      t.match(operation, { summary: /^[A-Z]/, tags: [new RegExp(`^(${tags.join('|')})$`)] }, name)
      for (const [status, { description }] of Object.entries(responsesOf(operation))) {
        t.match(description, /^[A-Z]/, `${name} ${status}`)
      }
    }
  })

  t.test('8 a response that several operations have is there once', async (t) => {
    const names = operations.flatMap(({ operation }) => Object.entries(operation.responses)
      .filter(([status]) => Number(status) >= 400).map(([, response]) => '$ref' in response && response.$ref))
    t.strictSame(
      new Set(names), new Set(Object.keys(document.components.responses)
        .filter((name) => !name.startsWith('NotModified')).map((name) => `#/components/responses/${name}`))
    )
    t.ok(names.length > 10 * new Set(names).size)
    t.strictSame(Object.keys(document.components.responses).filter((name) => /\d$/.test(name)), [], 'each has a name')
  })

  t.test('1.2 1.3 every failure has the right schema', async (t) => {
    for (const { name, operation } of operations) {
      for (const [status, { content }] of Object.entries(responsesOf(operation))) {
        if (Number(status) < 400) continue
        const { 'application/json': { example, ...media } = {}, ...others } = content!
        const failure = `${name} ${status}` === 'POST /api/auth/login 401' ? LOGIN_FAILURE : ERROR
        const invalid = name === 'POST /api/auth/email-verification/confirm' ? CONFIRMATION_ERRORS : ERRORS
        t.strictSame([media, others], [status === '400' ? invalid : failure, {}], `${name} ${status}`)
        t.match(
          example,
          status === '400' ? { errors: [/^name /, /^email /] } : { error: /^[A-Z]/, code: /^[A-Z_]+$/ },
          `${name} ${status}`
        )
      }
    }
    const responses = responsesOf(document.paths['/api/auth/login']!.post!)
    t.strictSame(
      responses['401']!.content!['application/json']!.example,
      (await inject('POST', '/api/auth/login', { payload: { email: 'none@example.com', password: 'x' } })).json()
    )
    t.match(document.components.schemas, {
      Errors: { required: ['errors'] }, Error: { required: ['error'], properties: { code: { type: 'string' } } },
    })
    for (const path of ['/api/users', '/api/uploads', '/api/users/{id}/invitation']) {
      const { parameters, responses: _, ...operation } = document.paths[path]!.post!
      const responses = responsesOf(document.paths[path]!.post!)
      t.match(
        parameters,
        [...path.includes('{') ? [{}] : [], { name: 'Idempotency-Key', in: 'header', required: false }],
        `10.4 POST ${path}`
      )
      t.match(Object.values(responses)[0]!.headers, { 'Idempotency-Replayed': {} })
      t.match([responses['410'], responses['422'], operation], [
        { content: {} }, { content: {} }, { 'x-idempotent': undefined },
      ])
    }
    t.match(responsesOf(document.paths['/api/protected']!.get!)['401']!.headers, {
      'WWW-Authenticate': { schema: { type: 'string' } },
    })
  })

  t.test('2.1 3 the list of users has three media types and no required parameter', async (t) => {
    const { parameters } = document.paths['/api/users']!.get!
    const responses = responsesOf(document.paths['/api/users']!.get!)
    const items = { anyOf: [{ $ref: '#/components/schemas/User' }, { $ref: '#/components/schemas/UserPart' }] }
    const list = { type: 'array', items }
    const part = { required: ['id'], properties: { name: {} } }
    t.match(document.components.schemas, { UserPart: part }, '10.5 with the parameter fields')
    t.match(responses['200']!.content, {
      'application/json': { schema: list },
      'application/vnd.api.v1+json': { schema: list },
      'application/vnd.api.v2+json': { schema: { required: ['version', 'data', 'page'], properties: { data: list } } },
    })
    t.strictSame(parameters!.map(({ name, in: place, required }) => [name, place, required]),
      [
        ...[
          'role', 'email', 'q', 'kind', 'disabled', 'emailVerified', 'secondFactor', 'sort', 'limit', 'after', 'fields',
        ].map((name) => [name, 'query', false]),
        ...['If-None-Match', 'If-Match', 'Prefer'].map((name) => [name, 'header', false]),
      ])
  })

  t.test('2.3 5.1 the bodies of users are JSON, that of uploads is a form with a file and a description', async (t) => {
    const { schemas } = document.components
    t.match(document.paths['/api/users']!.post!.requestBody, {
      required: true, content: { 'application/json': { schema: { $ref: '#/components/schemas/CreateUser' } } },
    })
    t.match(schemas.CreateUser, {
      required: ['name', 'email'],
      properties: { email: { type: 'string', format: 'email', maxLength: 254 }, role: { enum: ['admin', 'user'] } },
    })
    t.strictSame(document.paths['/api/uploads']!.post!.requestBody, {
      required: true, content: { 'multipart/form-data': { schema: { $ref: '#/components/schemas/UploadForm' } } },
    })
    t.match(schemas.UploadForm, {
      required: ['file', 'description'],
      properties: {
        file: { type: 'string', contentMediaType: 'application/octet-stream' }, description: { type: 'string' },
      },
    })
  })

  t.test('15.3 every JSON body has an example, and that of a new user can be sent unchanged', async (t) => {
    const examples = Object.fromEntries(operations.flatMap(({ name, operation }) => {
      const body = operation.requestBody?.content['application/json']
      return body ? [[name, body.example]] : []
    }))
    t.strictSame(Object.keys(examples)
      .sort(), ['POST /api/auth/login', 'PUT /api/auth/password', 'POST /api/auth/password-reset',
      'POST /api/auth/password-reset/check', 'POST /api/auth/password-reset/confirm', 'POST /api/auth/passkeys',
      'POST /api/auth/keys', 'POST /api/users/{id}/keys',
      'PATCH /api/auth/passkeys/{id}', 'POST /api/auth/login/passkey', 'POST /api/auth/login/second-factor',
      'POST /api/auth/step-up', 'POST /api/auth/totp/confirm', 'POST /api/auth/email-verification/check',
      'POST /api/auth/email-verification/confirm', 'POST /api/auth/undo/check', 'POST /api/auth/undo',
      'POST /api/auth/providers/{id}/link', 'POST /api/auth/providers/{id}/step-up',
      'POST /api/users', 'PUT /api/users/{id}', 'PATCH /api/users/{id}', 'POST /api/posts', 'PATCH /api/posts/{id}',
      'PATCH /api/uploads/{id}',
      'POST /api/uploads/{id}/links'].sort())
    for (const [name, example] of Object.entries(examples)) t.type(example, 'object', name)
    t.strictSame(
      examples['PUT /api/users/{id}'], { name: 'Ada Lovelace', email: 'ada@example.com' }, 'it changes no role'
    )
    t.strictSame(
      operations.filter(({ name }) => name.startsWith('PATCH '))
        .flatMap(({ operation }) => Object.keys(operation.requestBody!.content)),
      ['application/json', 'application/merge-patch+json', 'application/json', 'application/merge-patch+json',
        'application/json', 'application/merge-patch+json', 'application/json', 'application/offset+octet-stream'],
      'of passkeys, of users, of posts and of uploads'
    )
    t.match(document.components.schemas.UploadForm, { properties: { description: { examples: ['A greeting'] } } })

    const created = await inject(
      'POST', '/api/users', { headers: admin.headers, payload: examples['POST /api/users']! }
    )
    t.equal(created.statusCode, 201)
    const { id, email, role } = created.json()
    t.strictSame({ email, role }, { email: 'ada@example.com', role: 'user' })
    const login = await inject('POST', '/api/auth/login', { payload: examples['POST /api/auth/login']! })
    t.equal(login.statusCode, 200)
    const headers = { authorization: `Bearer ${login.json().token}` }
    t.equal(
      (await inject('PUT', `/api/users/${id}`, { headers, payload: examples['PUT /api/users/{id}']! })).json().role,
      'user'
    )
    t.equal(
      (await inject('PUT', '/api/auth/password', { headers, payload: examples['PUT /api/auth/password']! })).statusCode,
      204
    )
  })

  t.test("8 it does not contain the validator's own keywords", async (t) => {
    for (const keyword of ['text', 'trim', 'maxBytes', 'uncommon']) t.notMatch(response.body, `"${keyword}":`)
  })

  t.test('8 GET /docs is a page that loads files from this node only, with a strict content security policy', async (t) => {
    for (const [path, files] of [['/docs', './docs/static/'], ['/docs/', './static/']] as const) {
      const page = await inject('GET', path)
      t.equal(page.statusCode, 200)
      t.match(page.headers, {
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy':
          "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      })
      const links = [...page.body.matchAll(/(?:src|href)="([^"#]+)"/g)].map(([, link]) => link!)
      t.equal(links.filter((link) => link.startsWith(files)).length, 6)
      for (const link of new Set(links)) {
        t.ok(/^\.\.?\/|^\/(graphql|docs\/)/.test(link), link)
        const { pathname } = new URL(link, `http://localhost${path}`)
        t.equal((await inject('GET', pathname, { headers: { accept: 'text/html' } })).statusCode, 200, link)
      }
      t.match(page.body, '<meta name="viewport" content="width=device-width, initial-scale=1">')
      t.match(page.body, `data-api="${path === '/docs' ? './api' : '../api'}"`)
      t.match(page.body, `data-base="${path === '/docs' ? '.' : '..'}"`)
      t.notMatch(page.body, /<script>|\{\{|style=|undefined|\[object/)
    }
  })

  t.test('15.3 the page has each operation and each schema once, lists all operations, and its links lead somewhere', async (t) => {
    const { body } = await inject('GET', '/docs')
    const ids = [...body.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id!)
    t.strictSame(ids.filter((id, index) => ids.indexOf(id) !== index), [])
    const expected = [
      ...operations.map(({ operation }) => `operation-${operation.operationId}`),
      ...Object.keys(document.components.schemas).map((name) => `schema-${name}`),
    ]
    t.strictSame(expected.filter((id) => !ids.includes(id)), [])
    const targets = [...body.matchAll(/(?: href="#| for="| aria-describedby=")([^"]*)"/g)].map(([, id]) => id!)
    t.ok(targets.length > 200)
    t.strictSame(targets.filter((id) => !ids.includes(id)), [])
    t.notMatch(body, /<details[^>]* open/)
    const [, list] = /<ul class="index">([^]*?)<\/nav>/.exec(body)!
    t.strictSame([...list!.matchAll(/href="#operation-(\w+)"/g)].map(([, id]) => id).sort(), operations.map(({ operation }) => operation.operationId).sort())
    t.match([...list!.matchAll(/class="group"[^>]*>([^<]+)</g)].map(([, name]) => name), ['Auth', 'Users', 'Uploads', 'Passkeys'], 'the core is first')
    const createUser = articleOf(body, 'createUser')
    t.match(createUser, 'curl -X POST &quot;$BASE/api/users&quot;', 'a command is there without scripts')
    t.match(createUser, '<summary>1 optional parameter</summary>')
    t.match(createUser, '<label for="createUser-header-Idempotency-Key">')
    t.match(createUser, '&quot;email&quot;: &quot;ada@example.com&quot;', 'the example can be sent as it stands')
  })

  t.test('15.3 what a failure says is what it says of that operation', async (t) => {
    const { body } = await inject('GET', '/docs')
    const says = (id: string, status: string) =>
      new RegExp(`<span class="badge (?:warning|error)">${status}</span><div>(?:<code>\\w+</code> )?<span class="says">([^<]+)`).exec(articleOf(body, id))![1]
    t.equal(says('createUser', '400'), 'name is required. email is required')
    t.equal(says('createUser', '409'), 'This email address is already taken')
    t.equal(says('listUsers', '400'), 'q must be at least 2 characters. kind must be one of person, service')
    t.equal(says('updateUser', '400'), 'name must be a string. email must be a string')
    t.equal(says('endOtherSessions', '400'), 'body is not valid JSON')
    t.equal(says('removePasskey', '409'), 'The last way to sign in cannot be removed: set a password or add another one first')
    const { errors } = (await inject('POST', '/api/users', { headers: admin.headers, payload: {} })).json()
    t.strictSame(errors, ['name is required', 'email is required'], 'as the operation does')
    const bodies = operations.flatMap(({ operation }) => operation.responses['409'] ? [articleOf(body, operation.operationId)] : [])
    t.ok(bodies.length > 20)
    for (const article of bodies) t.match(article, /badge warning">409<\/span><div><code>\w+<\/code>/)
  })

  t.test('8 GET /docs/static sends an unchanged file only once, and 404 for an unknown one', async (t) => {
    const path = '/docs/static/docs.css'
    const { etag } = (await inject('GET', path)).headers
    const again = await inject('GET', path, { headers: { 'if-none-match': `${etag}` } })
    t.strictSame([again.statusCode, again.body], [304, ''])
    t.equal((await inject('GET', `${path}?v=1`, { headers: { 'if-none-match': 'W/"other"' } })).statusCode, 200)
    for (const path of [
      '/docs/none', '/docs/static/none', '/docs/static/..%2f..%2fpackage.json', '/docs/static/docs%2ecss',
      '/docs//json',
    ]) {
      const response = await inject('GET', path)
      t.strictSame([response.statusCode, response.json().error], [404, 'Not found'], path)
    }
    t.equal((await inject('HEAD', '/docs')).statusCode, 200)
  })

  t.test('8 GET /docs/json sends an unchanged document only once', async (t) => {
    const again = await inject(
      'GET', '/docs/json', { headers: { 'if-none-match': `"other", ${response.headers.etag}` } }
    )
    t.strictSame([again.statusCode, again.body, again.headers.etag], [304, '', response.headers.etag])
    t.equal((await inject('GET', '/docs/json', { headers: { 'if-none-match': '*' } })).statusCode, 304)
  })

  t.test('8 GET /docs/schema.graphql returns the GraphQL schema', async (t) => {
    const sdl = await inject('GET', '/docs/schema.graphql')
    t.equal(sdl.headers['content-type'], 'text/plain; charset=utf-8')
    t.ok(buildSchema(sdl.body).getSubscriptionType()!.getFields().postCreated)
  })
})

t.test('9 the reference contains the prefix and the public URL', async (t) => {
  const { inject } = await createUsher(t, { ...options, prefix: '/accounts', publicUrl: 'https://example.com/base/' })
  const { servers, paths, info } = (await inject('GET', '/docs/json')).json<Document>()
  t.strictSame(
    servers, [{ url: '/base/accounts' }, { url: 'https://example.com/base/accounts', description: 'The public URL' }]
  )
  t.ok(paths['/api/users'])
  t.match(info.description, '(/base/accounts/graphql)')
  t.match((await inject('GET', '/docs')).headers['content-security-policy'], "connect-src 'self';")
})

t.test('15.3 what a host calls its fields, and how it describes them, is text in the reference', async (t) => {
  const description = '<img src=x onerror=alert(1)> [this](javascript:alert(1)) `code` **more** [there](https://example.com/a?b=1&c=2)'
  const { inject } = await createUsher(t, {
    ...options, prefix: '/accounts', userFields: Type.Object({ motto: Type.Optional(Type.String({ maxLength: 50, description })) }),
  })
  const { body } = await inject('GET', '/docs')
  t.match(body, '&lt;img src=x onerror=alert(1)&gt; [this](javascript:alert(1)) <code>code</code> <strong>more</strong> ' +
    '<a href="https://example.com/a?b=1&amp;c=2">there</a>')
  t.notMatch(body, '<img')
})

nightly('9 a host keeps its own API reference, and two mounts have one each', async (t) => {
  const host = Fastify({ pluginTimeout: 0 })
  t.teardown(() => host.close())
  await host.register(helmet, { contentSecurityPolicy: { directives: { defaultSrc: ["'self'"] } } })
  await host.register(swagger, { openapi: { info: { title: 'Host', version: '1' } } })
  await host.register(swaggerUi)
  await host.register(fastifyStatic, { root: import.meta.dirname, prefix: '/files' })
  host.addSchema({ $id: 'thing', title: 'Thing', type: 'object', properties: { a: { type: 'string' } } })
  await host.register(usher, { ...options, prefix: '/one' })
  await host.register(usher, { ...options, prefix: '/two', decoratorName: 'second' })
  host.get('/mine', { schema: { response: { 200: { $ref: 'thing#' } } } }, async () => ({ a: 'b' }))
  await host.ready()

  const own = (await host.inject('/documentation/json')).json<Document>()
  t.equal(own.info.title, 'Host')
  t.strictSame(Object.keys(own.paths), ['/mine'])
  t.match((await host.inject('/documentation/')).headers['content-security-policy'], "default-src 'self'")
  for (const prefix of ['/one', '/two']) {
    const { servers, paths, components } = (await host.inject(`${prefix}/docs/json`)).json<Document>()
    t.strictSame(servers, [{ url: prefix }])
    t.strictSame(Object.keys(paths['/api/users']!), ['get', 'post'])
    t.notOk('/mine' in paths)
    t.notMatch(Object.keys(components.schemas), /Thing|def-/)
    t.match((await host.inject(`${prefix}/docs`)).headers['content-security-policy'], "default-src 'none'")
  }
})

nightly('9 a host keeps its reference in Swagger 2', async (t) => {
  const host = Fastify({ pluginTimeout: 0 })
  t.teardown(() => host.close())
  await host.register(swagger, { swagger: { info: { title: 'Host', version: '1' } } })
  await host.register(usher, { ...options, prefix: '/one' })
  host.get('/mine', async () => ({ a: 'b' }))
  await host.ready()
  t.match(host.swagger(), { swagger: '2.0', info: { title: 'Host' } })
  t.strictSame(Object.keys(host.swagger().paths!), ['/mine'])
  t.match((await host.inject('/one/docs/json')).json(), { openapi: '3.1.0' })
})
