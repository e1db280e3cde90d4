import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import type { UsherOptions } from '../../app.ts'
import { createUsher } from '../helpers/app.ts'

type Part = NonNullable<UsherOptions['without']>[number]

// The modules that only this part loads.
const modulesOf: Record<Part, RegExp> = {
  uploads: /plugins\/uploads|routes\/uploads|\/@fastify\/multipart\/|\/file-type\//,
  posts: /plugins\/posts\/(posts|events)\./,
  graphql: /routes\/graphql|\/(mercurius|graphql|graphql-jit|ws)\/|plugins\/posts\/events\./,
  docs: /routes\/docs\./,
  pages: /routes\/account-pages/,
}
const parts = Object.keys(modulesOf) as Part[]

for (const without of [...parts.map((part) => [part]), parts]) {
  t.test(`12.10 without ${without.join(', ')}, its modules are not loaded`, async (t) => {
    const { options } = await createUsher(t, { without })
    const script = join(import.meta.dirname, 'fixtures/loaded-modules.ts')
    const { stdout } = await promisify(execFile)(process.execPath, [script, JSON.stringify(options)])
    const loaded: string[] = JSON.parse(stdout)
    t.ok(loaded.some((url) => url.endsWith('/app.ts')))
    for (const part of without) t.strictSame(loaded.filter((url) => modulesOf[part].test(url)), [], part)
    t.notOk(loaded.some((url) => url.endsWith('/outbox/webhooks.ts')), 'that of webhooks is not loaded either, because there are none')
  })
}
