import type { Options } from '../../../schema/options/options.ts'
import type { UsherUser } from '../../../schema/users/users.ts'
import { button, buttonLink, card } from '../components.ts'
import { html, type Html } from '../html.ts'
import { addressOf } from './context.ts'

export type OpeningPages = ReturnType<typeof createOpeningPages>

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

  const openAgain = (next: string): Html => buttonLink(openingOf(next), 'Open the console', { wide: true })

  return {
    openingOf,
    loginOf,

    /**
     * Returns the page that opens the console by a button, with the session of the browser.
     * @param isAutomatic whether its script presses the button
     */
    ask: (next: string, isAutomatic: boolean): Html => html`<h1 tabindex="-1">Open the console</h1>
<p class="muted">The console has a session of its own, which ends after an hour.</p>
${card(html`<form method="post" action="${openingOf(next)}"${isAutomatic && html` id="open"`}>${
  button('Open the console', { wide: true })}</form>`)}`,

    /** Returns the page that says where to log in, because the pages for that are turned off. */
    askForLogin (next: string, isAgain: boolean): Html {
      const product = appUrl === undefined ? html`<bdi>${productName}</bdi>` : html`<a href="${appUrl}">${productName}</a>`
      return html`<h1 tabindex="-1">${isAgain ? 'Log in once more' : 'Log in first'}</h1>
<p>The console opens with the session of this browser, soon after a login. Log in to ${product}${
  isAgain && ' again'}, and come back.</p>${openAgain(next)}`
    },

    /** Returns the page for a user who may not open the console. */
    refuse ({ id, name, email }: Pick<UsherUser, 'id' | 'name' | 'email'>, next: string): Html {
      const login = loginOf(next)
      return html`<h1 tabindex="-1">The console is for admins</h1>
<p>You are logged in as <bdi>${name}</bdi> (<bdi>${email}</bdi>), who may not open it.</p>
<p>An admin can change that: here, under Users, by your role. So can whoever runs the service:</p>
<p><code>npx fastify-usher users promote ${id}</code></p>${
  login !== undefined && html`<p><a href="${login}">Log in with another account</a></p>`}`
    },

    /** Returns the page for a user who has no second factor, and must have one. */
    askForFactor: (next: string): Html => html`<h1 tabindex="-1">Your account needs a second factor</h1>
<p>Add an authenticator app or a passkey to ${
  hasPages ? html`<a href="${publicPath}/account">your account</a>` : 'your account'}, log in with it, and come back.</p>${openAgain(next)}`,
  }
}
