import { readFile } from 'node:fs/promises'
import fp from 'fastify-plugin'
import { NotFound } from '../../schema/http/errors.ts'
import { fillTemplate, readFileOfPage, sourceOf, wantsPage } from '../../routes/pages/pages.ts'

/**
 * Adds the node's page at /, for requests that prefer a page to JSON, and its favicon (contract 15.1). They belong to
 * the node, because in a host both paths are those of the host.
 */
export default fp(async function home (app) {
  const [html, style, icon] = await Promise.all(['home.html', 'home.css', 'favicon.ico'].map((name) =>
    readFile(new URL(name, import.meta.url)))) as [Buffer, Buffer, Buffer]
  const page = fillTemplate(`${html}`, { style: `${style}` })
  const policy = [
    "default-src 'none'", `style-src ${sourceOf(`${style}`)}`, "img-src 'self'", "base-uri 'none'",
    "form-action 'none'", "frame-ancestors 'none'",
  ].join('; ')
  const files = {
    '/favicon.ico': ['image/x-icon', icon], '/favicon.svg': ['image/svg+xml', await readFileOfPage('favicon.svg')],
  } as const

  // Those of a configuration file take precedence.
  const isFree = (url: string) => !app.hasRoute({ method: 'GET', url })
  if (isFree('/')) {
    app.get('/', async (request, reply) => {
      reply.header('vary', [reply.getHeader('vary') ?? [], 'Accept'].flat().join(', '))
      if (!wantsPage(request)) throw new NotFound()
      return reply.headers({ 'content-security-policy': policy, 'cache-control': 'no-cache' })
        .type('text/html; charset=utf-8').send(page)
    })
  }
  for (const [path, [type, content]] of Object.entries(files).filter(([path]) => isFree(path))) {
    app.get(path, (_, reply) => reply.header('cache-control', 'public, max-age=86400').type(type).send(content))
  }
}, { name: 'usher-home' })
