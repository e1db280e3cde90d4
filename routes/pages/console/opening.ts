import type { Options } from '../../../schema/options/options.ts'
import type { UsherUser } from '../../../schema/users/users.ts'
import { button, buttonLink, card } from '../components.ts'
import { html, type Html } from '../html.ts'
import { addressOf } from './context.ts'
import { textOfRole } from './shown.ts'
import type { Words } from './words.ts'

export type OpeningPages = ReturnType<typeof createOpeningPages>

/** Returns the sentences about an action that the role of somebody lacks. */
export function showDenied (words: Words, role: string, action: string, roles: readonly string[]): Html {
  const { t } = words
  const values = { role: html`<strong>${textOfRole(t, role)}</strong>`, action: html`<code>${action}</code>` }
  return html`${words.phrase('roleLacks', values)} ${roles.length === 0
    ? t.noRoleHas
    : words.format('rolesHave', { roles: words.list(roles.map((name) => textOfRole(t, name))) })}`
}

/** Returns functions that render the pages between a visitor and the console. */
export function createOpeningPages (
  { publicPath, pages: { enabled, productName, appUrl }, without }: Pick<Options, 'publicPath' | 'pages' | 'without'>,
  { path }: { path: string }
) {
  const hasPages = enabled && !without.includes('pages')
  /** Returns the page that leads to a page of the console. */
  const openingOf = (next: string): string => addressOf(`${path}/login`, { next })

  /**
   * Returns the address of the login, which leads to a page of the console, or undefined if the pages are turned off.
   * @param isAgain whether it says that the user has to log in once more
   */
  function loginOf (next: string, isAgain = false): string | undefined {
    if (!hasPages) return undefined
    const query = new URLSearchParams({ returnTo: openingOf(next) })
    return `${publicPath}/login?${isAgain ? 'confirm&' : ''}${query}`
  }

  const openAgain = ({ t }: Words, next: string): Html => buttonLink(openingOf(next), t.openTitle, { wide: true })

  return {
    openingOf,
    loginOf,

    /**
     * Returns the page that opens the console by a button, with the session of the browser.
     * @param isAutomatic whether its script presses the button
     */
    ask: ({ t }: Words, next: string, isAutomatic: boolean): Html => html`<h1 tabindex="-1">${t.openTitle}</h1>
<p class="muted">${t.openHint}</p>
${card(html`<form method="post" action="${openingOf(next)}"${isAutomatic && html` id="open"`}>${
  button(t.openTitle, { wide: true })}</form>`)}`,

    /** Returns the page that says where to log in, because the pages for that are turned off. */
    askForLogin (words: Words, next: string, isAgain: boolean): Html {
      const product = appUrl === undefined ? html`<bdi>${productName}</bdi>` : html`<a href="${appUrl}">${productName}</a>`
      return html`<h1 tabindex="-1">${isAgain ? words.t.logInOnceMore : words.t.logInFirst}</h1>
<p>${words.phrase('logInText', { product })}</p>${openAgain(words, next)}`
    },

    /**
     * Returns the page for a user who may not open the console.
     * @param roles the roles that may
     */
    refuse (
      words: Words, { id, name, email, role }: Pick<UsherUser, 'id' | 'name' | 'email' | 'role'>,
      { next, roles }: { next: string, roles: readonly string[] }
    ): Html {
      const { t } = words
      const login = loginOf(next)
      return html`<h1 tabindex="-1">${t.openDenied}</h1>
<p>${words.phrase('openDeniedWho', { name: html`<bdi>${name}</bdi>`, email: html`<bdi>${email}</bdi>` })}</p>
<p>${showDenied(words, role, 'console:open', roles)}</p>
<p>${t.adminsOnlyHow}</p>
<p><code>npx fastify-usher users promote ${id}</code></p>${
  login !== undefined && html`<p><a href="${login}">${t.otherLogin}</a></p>`}`
    },

    /** Returns the page for a user who has no second factor, and must have one. */
    askForFactor (words: Words, next: string): Html {
      const { t } = words
      return html`<h1 tabindex="-1">${t.factorNeeded}</h1>
<p>${words.phrase('factorHow', {
  account: hasPages ? html`<a href="${publicPath}/account">${t.yourAccount}</a>` : t.yourAccount,
})}</p>${openAgain(words, next)}`
    },
  }
}
