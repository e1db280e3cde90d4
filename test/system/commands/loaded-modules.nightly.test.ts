import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import type { UsherOptions } from '../../../app.ts'
import { createUsher } from '../../helpers/app.ts'
import { startFakeS3 } from '../../helpers/fake-s3.ts'

type Part = NonNullable<UsherOptions['without']>[number]

// The modules that only this part loads. How an upload is shown is also known to the host API and to GraphQL.
const modulesOf: Record<Part, RegExp> = {
  uploads: /plugins\/uploads(?!\/show-upload)|routes\/uploads|\/@fastify\/multipart\/|\/file-type\//,
  posts: /plugins\/posts\/(posts|events)\./,
  graphql: /routes\/graphql|node_modules\/(mercurius|graphql|graphql-jit|ws)\//,
  docs: /routes\/pages\/reference\./,
  pages: /routes\/pages\/account/,
}
const parts = Object.keys(modulesOf) as Part[]

// Only requests to the reference need these, or the options `s3` and `replicaUrls`, or a host that imports `node:http`:
// then Node.js loads undici with it.
const lazy =
  /db\/replicas\/|plugins\/uploads\/(s3\/|moving\.)|@node-rs\/bcrypt|schema\/openapi\.|\/@fastify\/swagger|deps\/undici\/undici$/

async function modulesWith (options: UsherOptions): Promise<string[]> {
  const script = join(import.meta.dirname, 'fixtures/loaded-modules.ts')
  // tap adds modules to every process that a test starts.
  const env = { ...process.env, NODE_OPTIONS: '' }
  return JSON.parse((await promisify(execFile)(process.execPath, [script, JSON.stringify(options)], { env })).stdout)
}

t.test('9 a host with all parts loads at its start neither the reference, an S3, standbys nor the HTTP client of Node.js', async (t) => {
  const { options } = await createUsher(t)
  const loaded = await modulesWith(options)
  // In the package, it is part of a bundle.
  t.ok(loaded.some((url) => url.endsWith('/routes/pages/reference.ts') || url.endsWith('/dist/bundle/app.js')))
  t.strictSame(loaded.filter((url) => lazy.test(url)), [])
})

t.test('13.3 with an S3, the HTTP client of Node.js is not loaded at the start either', async (t) => {
  const { options: s3 } = await startFakeS3(t)
  const { options } = await createUsher(t)
  const loaded = await modulesWith({ ...options, s3 })
  t.ok(loaded.some((url) => url.endsWith('/plugins/uploads/s3/requests.ts')))
  t.strictSame(loaded.filter((url) => /deps\/undici\/undici$/.test(url)), [])
})

t.test('16.5 with a provider, the libraries for it are not loaded at the start', async (t) => {
  const { options } = await createUsher(t)
  const providers = { github: { clientId: 'usher', clientSecret: 'a secret' } }
  const loaded = await modulesWith({ ...options, publicUrl: 'https://example.com', providers })
  t.ok(loaded.some((url) => url.endsWith('/providers/client.ts')))
  t.strictSame(loaded.filter((url) => /\/(openid-client|oauth4webapi|jose)\//.test(url)), [])
})

t.test('16.5 the libraries for providers leave no trace in a host', async (t) => {
  const script = `
    const seen = () => [globalThis, Object.prototype, Array.prototype, Reflect, Promise, Error]
      .map((value) => Reflect.ownKeys(value).map(String))
    // Getters of Node.js load what they return.
    const before = [new Response(), new Headers(), crypto.subtle, seen()].at(-1)
    await Promise.all([import('openid-client'), import('jose')])
    console.log(JSON.stringify([before, seen()]))`
  const { stdout } = await promisify(execFile)(
    process.execPath, ['--input-type=module', '--eval', script], { env: { ...process.env, NODE_OPTIONS: '' } }
  )
  const [before, after] = JSON.parse(stdout)
  // tap adds its own to every process that a test starts.
  const ofUsher = (names: string[][]) => names.map((each) => each.filter((name) => !name.includes('@tapjs')))
  t.strictSame(ofUsher(after), ofUsher(before))
})

for (const without of [...parts.map((part) => [part]), parts]) {
  t.test(`12.10 without ${without.join(', ')}, its modules are not loaded`, async (t) => {
    const { options } = await createUsher(t, { without })
    const loaded = await modulesWith(options)
    t.ok(loaded.some((url) => url.endsWith('/app.ts')))
    for (const part of without) t.strictSame(loaded.filter((url) => modulesOf[part].test(url)), [], part)
    t.notOk(
      loaded.some((url) => url.endsWith('/outbox/webhooks.ts')),
      'that of webhooks is not loaded either, because there are none'
    )
  })
}
