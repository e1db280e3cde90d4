import { readFile } from 'node:fs/promises'
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { addVary } from '../../plugins/http/vary.ts'
import { createLanguages } from '../../routes/pages/account/texts.ts'
import { card, list, listRow, page, readDesign } from '../../routes/pages/components.ts'
import { html } from '../../routes/pages/html.ts'
import { readFileOfPage, wantsPage } from '../../routes/pages/pages.ts'
import { NotFound } from '../../schema/http/errors.ts'
import type { Options } from '../../schema/options/options.ts'
import type { Texts } from '../../schema/translations/en.ts'
import { directionOf } from '../../schema/translations/languages.ts'

const STYLE = '/design.css'
/** The content security policy of the node's pages. */
export const policy = [
  "default-src 'none'", "style-src 'self'", "img-src 'self'", "base-uri 'none'", "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const home: FastifyPluginAsync<Pick<Options, 'pages'>> = async (app, { pages }) => {
  const { enabled, productName, color, logo } = pages
  const languages = await createLanguages({ pages })
  const icon = await readFile(new URL('favicon.ico', import.meta.url))
  const files = {
    '/favicon.ico': ['image/x-icon', icon],
    '/favicon.svg': ['image/svg+xml', await readFileOfPage('favicon.svg')],
    [STYLE]: ['text/css; charset=utf-8', readDesign(color)],
  } as const

  function render (texts: Texts, language: string): string {
    const {
      homeUp, homeReference, homeReferenceHint, homeGraphiqlHint, accountTitle, logIn, skipToContent,
    } = texts
    const links: [href: string, text: string, hint: string][] = [
      ['docs', homeReference, homeReferenceHint],
      ['graphql', 'GraphiQL', homeGraphiqlHint],
      ...enabled ? [['login', logIn, accountTitle] satisfies [string, string, string]] : [],
    ]
    return `${page({
      language,
      direction: directionOf(language),
      title: homeUp,
      productName,
      icon: 'favicon.svg',
      stylesheets: [STYLE.slice(1)],
      scripts: [],
      skip: skipToContent,
      ...logo !== undefined && { logo },
      content: card(html`<h1>${productName}</h1>
<p class="status">${homeUp}</p>
${list(links.map(([href, text, hint]) => listRow({ title: html`<a href="${href}">${text}</a>`, hint })))}`),
    })}`
  }

  const rendered = new Map([...languages.texts].map(([language, texts]) => [language, render(texts, language)]))

  // Those of a configuration file take precedence.
  const isFree = (url: string) => !app.hasRoute({ method: 'GET', url })
  if (isFree('/')) {
    app.get('/', async (request, reply) => {
      addVary(reply, 'Accept')
      if (!wantsPage(request)) throw new NotFound()
      if (languages.isNegotiated) addVary(reply, 'Accept-Language')
      const language = languages.of(request)
      return reply
        .headers({ 'content-security-policy': policy, 'cache-control': 'no-cache', 'content-language': language })
        .type('text/html; charset=utf-8').send(rendered.get(language))
    })
  }
  for (const [path, [type, content]] of Object.entries(files).filter(([path]) => isFree(path))) {
    const cache = path === STYLE ? 'no-cache' : 'public, max-age=86400'
    app.get(path, (_, reply) => reply.header('cache-control', cache).type(type).send(content))
  }
}

/**
 * Adds the node's page at /, for requests that prefer a page to JSON, with its style and its favicon (contract 15.1).
 * They belong to the node, because in a host these paths are those of the host.
 */
export default fp(home, { name: 'usher-home' })
