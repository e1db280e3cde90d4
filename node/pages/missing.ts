import type { FastifyReply, FastifyRequest } from 'fastify'
import { addVary } from '../../plugins/http/vary.ts'
import { createLanguages } from '../../routes/pages/account/texts.ts'
import { card, page } from '../../routes/pages/components.ts'
import { html } from '../../routes/pages/html.ts'
import { wantsPage } from '../../routes/pages/pages.ts'
import { formatText } from '../../schema/translations/format.ts'
import { directionOf } from '../../schema/translations/languages.ts'
import type { Options } from '../../schema/options/options.ts'
import { policy } from './home.ts'

// Deeper than any page, and shallow enough that nobody makes the node repeat a long address.
const MAX_DEPTH = 20

/** Returns the page for a path that does not exist, or undefined for a request that gets JSON. */
export type RenderMissing = (request: FastifyRequest, reply: FastifyReply) => string | undefined

/**
 * Creates what the node shows browsers on a path that does not exist (contract 15.1): a page in their language. Below
 * /api, and for all other clients, the response is JSON (1.3).
 */
export async function createMissingPage ({ pages }: Pick<Options, 'pages'>): Promise<RenderMissing> {
  const { productName, logo, appUrl } = pages
  const languages = await createLanguages({ pages })

  return (request, reply) => {
    const [path = '/'] = request.url.split('?', 1)
    if (!['GET', 'HEAD'].includes(request.method) || /^\/api(\/|$)/.test(path)) return undefined
    addVary(reply, 'Accept')
    if (!wantsPage(request)) return undefined
    if (languages.isNegotiated) addVary(reply, 'Accept-Language')
    const language = languages.of(request)
    const { pageMissing, pageMissingHint, skipToContent, backToApp } = languages.texts.get(language)!
    const depth = path.split('/').length - 2
    // Relative, because a proxy may have removed a part of the path.
    const root = depth > MAX_DEPTH ? '/' : '../'.repeat(depth) || './'
    reply.headers({ 'content-security-policy': policy, 'cache-control': 'no-cache', 'content-language': language })
      .type('text/html; charset=utf-8')
    return `${page({
      language,
      direction: directionOf(language),
      title: pageMissing,
      productName,
      icon: `${root}favicon.svg`,
      stylesheets: [`${root}design.css`],
      scripts: [],
      skip: skipToContent,
      ...logo !== undefined && { logo },
      content: card(html`<h1>${pageMissing}</h1>
<p>${pageMissingHint}</p>
<p><a href="${appUrl ?? root}">${formatText(backToApp, { product: productName }, language)}</a></p>`),
    })}`
  }
}
