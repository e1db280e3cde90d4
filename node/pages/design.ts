import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { readDesign } from '../../routes/pages/components.ts'
import { FONT, FONT_POLICY, readFont } from '../../routes/pages/font.ts'
import { readFileOfPage } from '../../routes/pages/pages.ts'

const policy = `default-src 'none'; script-src 'self'; style-src 'self'; ${FONT_POLICY}; img-src 'self'; base-uri 'none'; ` +
  "form-action 'none'; frame-ancestors 'none'"

const design: FastifyPluginAsync<{ color: string }> = async (app, { color }) => {
  const { renderDesignPage } = await import('../../routes/pages/design-page.ts')
  const files = {
    '/console/design': ['text/html; charset=utf-8', `${renderDesignPage({ assets: 'design/', icon: '../favicon.svg' })}`],
    '/console/design/design.css': ['text/css; charset=utf-8', readDesign(color)],
    [`/console/design/${FONT}`]: ['font/woff2', readFont()],
    '/console/design/ui.js': ['text/javascript; charset=utf-8', await readFileOfPage('ui.js')],
  } as const
  for (const [path, [type, content]] of Object.entries(files)) {
    app.get(path, (_, reply) => reply.headers({ 'content-security-policy': policy, 'cache-control': 'no-cache' })
      .type(type).send(content))
  }
}

/** Adds a page with all components of pages at /console/design, for development (contract 15.2). */
export default fp(design, { name: 'usher-design' })
