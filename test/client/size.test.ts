import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import t from 'tap'

const KIB = 1024

async function bundle (entry: string): Promise<Uint8Array> {
  const absWorkingDir = new URL('../..', import.meta.url).pathname
  // Modules of Node.js are not found on this platform, so the bundle fails if there is one.
  const options = {
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    absWorkingDir,
  } as const
  const { outputFiles: [output] } = await build({ ...options, external: ['react'], entryPoints: [entry] })
  return gzipSync(output!.contents, { level: 9 })
}

t.test('15.4 the client has at most 10 KiB with everything that it needs, and runs in browsers', async (t) => {
  const { length } = await bundle('client/index.ts')
  t.ok(length > KIB && length <= 10 * KIB, `${length} bytes`)
  const { length: posts } = await bundle('client/posts.ts')
  t.ok(posts > KIB && posts <= 3 * KIB, `${posts} bytes`)
})

t.test('15.6 the hooks and components for React have at most 27 KiB, with the client and without React', async (t) => {
  const { length } = await bundle('client/react.ts')
  t.ok(length > 15 * KIB && length <= 27 * KIB, `${length} bytes`)
  const { length: css } = await bundle('client/react.css')
  t.ok(css > KIB && css <= 3 * KIB, `${css} bytes`)
})
