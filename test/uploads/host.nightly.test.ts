import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { createGunzip, gzipSync } from 'node:zlib'
import fastifyMultipart from '@fastify/multipart'
import Fastify, { type FastifyInstance, type preParsingHookHandler } from 'fastify'
import t, { type Test } from 'tap'
import usher from '../../app.ts'
import { withUsers } from '../helpers/app.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { slow } from '../helpers/deadlines.ts'
import { END, fieldPart, filePart, FORM, post, upload } from '../helpers/uploads.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

const ADMIN = { email: 'admin@example.com', password: 'horse battery staple' }

// All hosts use the same schema and folder, one after the other.
const shared = {
  databaseUrl: await testDatabaseUrl(), deadlines: slow, schema: uniqueSchema(t.name), uploadsDir: temporaryFolder(),
}

/** Creates a host that calls `before`, mounts Usher under a prefix, and calls `after`. */
async function createHost (
  t: Test, before: (host: FastifyInstance) => unknown, after: (host: FastifyInstance) => unknown = () => {}
) {
  const host = Fastify({ pluginTimeout: 0, forceCloseConnections: true, exposeHeadRoutes: false })
  t.teardown(() => host.close())
  const options = { ...shared, prefix: '/accounts', admin: ADMIN, poolSize: 2 }
  await before(host)
  await host.register(usher, options)
  await after(host)
  await host.ready()
  return { host, mounted: await withUsers(host, options) }
}

/** Checks what must work in every host. */
async function uploadsWork (t: Test, mounted: Awaited<ReturnType<typeof withUsers>>): Promise<void> {
  const content = 'x'.repeat(100_000)
  const { fileUrl, filename, size } = await upload(mounted, content, '../a.txt')
  t.equal(filename, 'a.txt')
  t.equal(size, 100_000)
  t.match(fileUrl, /^\/accounts\/api\/uploads\//)
  t.equal((await mounted.app.inject(fileUrl)).body, content)
  t.equal((await mounted.app.inject({ method: 'HEAD', url: fileUrl })).headers['content-length'], '100000')
  const two = await post(mounted, [filePart('x'), filePart('y')])
  t.same(two.json(), { errors: ['file must be a single file', 'description is required'] })
  t.equal((await post(mounted, [filePart('x'), fieldPart('description', 'd')], { raw: true })).statusCode, 400)
  t.equal((await post(mounted, [filePart('x')], { type: 'application/x-odd' })).statusCode, 415)
}

for (const attachFieldsToBody of [true, 'keyValues', false] as const) {
  t.test(`9 uploads work if the host uses @fastify/multipart with attachFieldsToBody: ${attachFieldsToBody} and limits`, async (t) => {
    const { host, mounted } = await createHost(t, async (host) => {
      await host.register(fastifyMultipart, {
        attachFieldsToBody: attachFieldsToBody as true,
        limits: { fileSize: 10, fieldSize: 3, fields: 1, files: 1, parts: 2, headerPairs: 1 },
        preservePath: false,
        isPartAFile: (_, type) => type === 'application/x-claimed',
        throwFileSizeLimit: false,
      })
      host.post('/mine', async ({ body }) => Object.keys(body as object ?? {}))
    })
    await uploadsWork(t, mounted)
    if (!attachFieldsToBody) return
    const payload = Buffer.concat([filePart('short'), END])
    const response = await host.inject({ method: 'POST', url: '/mine', headers: { 'content-type': FORM }, payload })
    t.same(response.json(), ['file'], 'the host\'s own routes behave as before')
  })
}

t.test('9 uploads work if the host registers @fastify/multipart after Usher', async (t) => {
  const { mounted } =
    await createHost(t, () => {}, (host) => host.register(fastifyMultipart, { attachFieldsToBody: true }))
  await uploadsWork(t, mounted)
})

t.test('9 uploads work if the host parses all content types itself', async (t) => {
  const { mounted } = await createHost(
    t, (host) => host.addContentTypeParser('*', { parseAs: 'buffer' }, (_, body, done) => done(null, body))
  )
  await uploadsWork(t, mounted)
})

const large = Buffer.alloc(3 * 1024 * 1024, 'x')

for (const position of ['parent', 'route'] as const) {
  t.test(`9 uploads work if a preParsing hook of the host (${position}) reads the body as well, up to a limit`, async (t) => {
    const read: number[] = []
    const { mounted } = await createHost(t, (host) => {
      // As fastify-raw-body does it.
      const hook: preParsingHookHandler = (_, __, payload, done) => {
        let bytes = 0
        const index = read.push(0) - 1
        const count = (chunk: Uint8Array) => {
          read[index] = bytes += chunk.length
          if (bytes <= 1024 * 1024) return
          payload.removeListener('data', count)
          payload.unpipe()
          payload.pause()
        }
        payload.on('data', count)
        done(null, payload)
      }
      if (position === 'parent') host.addHook('preParsing', hook)
      else host.addHook('onRoute', (route) => { route.preParsing = [route.preParsing ?? [], hook].flat() })
    })
    await uploadsWork(t, mounted)
    t.ok(Math.max(...read) > 100_000, 'the host has read the form')
    const { size, fileUrl } = await upload(mounted, large)
    t.equal(size, large.length, 'also beyond the limit of the host')
    t.ok((await mounted.app.inject(fileUrl)).rawPayload.equals(large))
  })
}

t.test('9 uploads work if a preParsing hook of the host has read the body and returned another stream', async (t) => {
  const { mounted } = await createHost(
    t, (host) => host.addHook('preParsing', async (_, __, payload) => Readable.from([await buffer(payload)]))
  )
  await uploadsWork(t, mounted)
  t.equal((await upload(mounted, large)).size, large.length)
})

t.test('9 compressed bodies are accepted if a preParsing hook of the host decompresses them', async (t) => {
  const { mounted } = await createHost(t, (host) => host.addHook('preParsing', async ({ headers }, _, payload) => {
    if (headers['content-encoding'] !== 'gzip') return payload
    // Fastify compares this with `Content-Length`.
    const decompressed = Object.assign(createGunzip(), { receivedEncodedLength: 0 })
    payload.on('data', (chunk) => { decompressed.receivedEncodedLength += chunk.length })
    return payload.pipe(decompressed)
  }))
  const headers = { ...mounted.admin.headers, 'content-encoding': 'gzip' }
  const form = gzipSync(Buffer.concat([filePart('Hello'), fieldPart('description', 'x'), END]))
  const uploaded = await mounted.inject(
    'POST', '/api/uploads', { headers: { ...headers, 'content-type': FORM }, payload: form }
  )
  t.match([uploaded.statusCode, uploaded.json()], [200, { size: 5 }])
  const json = gzipSync('{"name":1}')
  const created = await mounted.inject(
    'POST', '/api/users', { headers: { ...headers, 'content-type': 'application/json' }, payload: json }
  )
  t.same(created.json(), { errors: ['name must be a string', 'email is required'] })
})

t.test('9 if a preParsing hook of the host consumes the body, an upload gets 500 at once', async (t) => {
  const { mounted } = await createHost(t, (host) => host.addHook('preParsing', async ({ headers }, _, payload) => {
    if (headers['content-type'] === FORM) await buffer(payload)
    return payload
  }))
  t.equal((await post(mounted, [filePart('x'), fieldPart('description', 'd')])).statusCode, 500)
})

t.test('9 uploads work if the host has its own multipart parser', async (t) => {
  const { host, mounted } = await createHost(t, (host) => {
    host.addContentTypeParser('multipart/form-data', { parseAs: 'string' }, (_, body, done) => done(null, body))
    host.post('/mine', async ({ body }) => body)
  })
  await uploadsWork(t, mounted)
  t.equal(
    (await host.inject({ method: 'POST', url: '/mine', headers: { 'content-type': FORM }, payload: 'as it was' })).body,
    'as it was'
  )
})
