import { readFile } from 'node:fs/promises'
import type { FastifyPluginAsync } from 'fastify'
import fp from 'fastify-plugin'
import { addVary } from '../../plugins/http/vary.ts'
import { createLanguages } from '../../routes/pages/account/texts.ts'
import { buttonLink, card, list, listRow, page, readDesign } from '../../routes/pages/components.ts'
import { FONT, FONT_POLICY, readFont } from '../../routes/pages/font.ts'
import { html, type Html } from '../../routes/pages/html.ts'
import { readFileOfPage, wantsPage } from '../../routes/pages/pages.ts'
import { NotFound } from '../../schema/http/errors.ts'
import type { Options } from '../../schema/options/options.ts'
import type { Texts } from '../../schema/translations/en.ts'
import { directionOf } from '../../schema/translations/languages.ts'

const STYLE = '/design.css'
const SCRIPT = '/home.js'
/** The content security policy of the node's pages. */
export const policy = [
  "default-src 'none'", "style-src 'self'", FONT_POLICY, "img-src 'self'", "base-uri 'none'", "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

// The page at / asks the service who is logged in.
const policyWithScript = `${policy}; script-src 'self'; connect-src 'self'`

/** What the page at / links to. */
type Given = Pick<Options, 'pages'> & Partial<Pick<Options, 'signUp' | 'console'>>

const home: FastifyPluginAsync<Given> = async (app, { pages, signUp = false, console: hasConsole = false }) => {
  const { enabled, productName, color, logo } = pages
  const languages = await createLanguages({ pages })
  const icon = await readFile(new URL('favicon.ico', import.meta.url))
  const files = {
    '/favicon.ico': ['image/x-icon', icon],
    '/favicon.svg': ['image/svg+xml', await readFileOfPage('favicon.svg')],
    [STYLE]: ['text/css; charset=utf-8', readDesign(color)],
    [`/${FONT}`]: ['font/woff2', readFont()],
    [SCRIPT]: ['text/javascript; charset=utf-8', await readFileOfPage('home.js')],
  } as const

  function render (texts: Texts, language: string): string {
    const {
      homeUp, homeReference, homeReferenceHint, homeGraphiqlHint, homeForPrograms, homeLoggedOut, homeAccountHint,
      homeConsoleHint, loggedInAs, accountTitle, accountConsole, logIn, signUpTitle, skipToContent,
    } = texts
    const row = (href: string, text: string, hint: string): Html =>
      listRow({ title: html`<a href="${href}">${text}</a>`, hint })
    // Without scripts, the page is that of somebody who is not logged in.
    const forPeople = html`<p class="strong" id="who" role="status" data-in="${loggedInAs}" data-out="${homeLoggedOut}"></p>
<div class="actions" data-for="nobody">${buttonLink('login', logIn)}${signUp && buttonLink('sign-up', signUpTitle, { kind: 'plain' })}</div>
<div data-for="user" hidden>${list([row('account', accountTitle, homeAccountHint)])}</div>
${hasConsole && html`<div data-for="admin" hidden>${list([row('console', accountConsole, homeConsoleHint)])}</div>`}`
    const forPrograms = html`<h2>${homeForPrograms}</h2>
${list([row('docs', homeReference, homeReferenceHint), row('graphql', 'GraphiQL', homeGraphiqlHint)])}`
    return `${page({
      language,
      direction: directionOf(language),
      title: homeUp,
      productName,
      icon: 'favicon.svg',
      stylesheets: [STYLE.slice(1)],
      scripts: enabled ? [SCRIPT.slice(1)] : [],
      skip: skipToContent,
      ...logo !== undefined && { logo },
      content: html`${card(html`<h1>${productName}</h1>
<p class="muted">${homeUp}</p>
${enabled && forPeople}`)}
${card(forPrograms)}`,
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
        .headers({
          'content-security-policy': enabled ? policyWithScript : policy,
          'cache-control': 'no-cache',
          'content-language': language,
        })
        .type('text/html; charset=utf-8').send(rendered.get(language))
    })
  }
  for (const [path, [type, content]] of Object.entries(files).filter(([path]) => isFree(path))) {
    const cache = path === STYLE || path === SCRIPT ? 'no-cache' : 'public, max-age=86400'
    app.get(path, (_, reply) => reply.header('cache-control', cache).type(type).send(content))
  }
}

/**
 * Adds the node's page at /, for requests that prefer a page to JSON, with its style and its favicon (contract 15.1).
 * They belong to the node, because in a host these paths are those of the host.
 */
export default fp(home, { name: 'usher-home' })
