import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { extname } from 'node:path'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { NotFound } from '../../../schema/http/errors.ts'
import { readDesign } from '../components.ts'
import { FONT, readFont } from '../font.ts'

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}
const IMMUTABLE = 'public, max-age=31536000, immutable'

/**
 * Serves the styles and the scripts of the console. Returns the path of their folder, which has a hash of them, so that
 * browsers can keep them.
 */
export function serveConsoleAssets (app: FastifyInstance): string {
  const { publicPath, pages: { color } } = app.usherOptions
  const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8')
  const assets = new Map<string, string | Buffer>([
    [FONT, readFont()],
    ['design.css', readDesign(color)],
    ['console.css', read('assets/console.css')],
    ['ui.js', read('../ui.js')],
    ['console.js', read('assets/console.js')],
    ['icon.svg', read('../favicon.svg')],
  ])
  const hash = createHash('sha256')
  for (const [name, content] of assets) hash.update(`${name}\0`).update(content).update('\0')
  const version = hash.digest('base64url').slice(0, 16)

  app.get('/console/assets/:version/:file', { schema: { hide: true } }, (request: FastifyRequest, reply) => {
    const { version: asked, file } = request.params as { version: string, file: string }
    const text = assets.get(file)
    if (text === undefined) throw new NotFound()
    return reply.type(TYPES[extname(file)]!).headers({
      'cache-control': asked === version ? IMMUTABLE : 'no-cache', 'x-content-type-options': 'nosniff',
    }).send(text)
  })
  return `${publicPath}/console/assets/${version}/`
}
