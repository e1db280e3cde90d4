/// <reference lib="dom" />
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import type { UsherOptions } from '../../app.ts'
import { createUsher } from './app.ts'
import { openPage } from './browser.ts'
import { createMailer } from './mail.ts'
import { openSql } from './sql.ts'
import { userFields as others } from './user-fields.ts'

const root = join(import.meta.dirname, '../..')
const css = readFileSync(join(root, 'client/react.css'), 'utf8')

/** Bundles a module that imports `usher-client`, in development mode, where React reports mistakes. */
export async function bundlePage (contents: string, loader: 'js' | 'tsx' = 'js'): Promise<string> {
  const { outputFiles: [script] } = await build({
    stdin: { contents, loader, resolveDir: root },
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"development"' },
    // The package is not built in tests.
    alias: {
      'usher-client': join(root, 'client/index.ts'),
      'usher-client/posts': join(root, 'client/posts.ts'),
      'usher-client/react': join(root, 'client/react.ts'),
    },
    bundle: true,
    format: 'esm',
    write: false,
  })
  return script!.text
}

const userFields = Type.Object({
  ...others.properties,
  bio: Type.Optional(Type.String({
    title: 'About you', description: 'Everybody can read it', maxLength: 200, 'x-write': 'owner', 'x-read': 'anyone',
  })),
})

// An app in Strict Mode, with a page for each component.
const app = `
import { createElement as h, StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { createUsherClient } from 'usher-client'
import { Account, SignIn, SignUp, UserButton, UsherProvider } from 'usher-client/react'

const client = createUsherClient({ baseUrl: '/accounts' })
const pages = {
  '/app/sign-in': () => h(SignIn, { signUpUrl: '/app/sign-up' }),
  '/app/sign-up': () => h(SignUp, { signInUrl: '/app/sign-in' }),
  '/app/account': () => h(Account, { keyActions: ['users:list'] }),
}
Object.assign(globalThis, { client })
const main = createRoot(document.querySelector('main'))
main.render(h(StrictMode, null, h(UsherProvider, { client },
  h('h1', null, 'Notes'),
  h(UserButton, { signInUrl: '/app/sign-in', accountUrl: '/app/account' }),
  h(pages[location.pathname]),
)))
globalThis.unmount = () => main.unmount()
`

let bundled: Promise<string> | undefined

/** Mounts Usher, and opens pages of an app with the components for React of the same origin. */
export async function openReactApp (t: Test, options: UsherOptions = {}) {
  const inbox = createMailer()
  const usher = await createUsher(t, {
    prefix: '/accounts', signUp: true, loginMail: true, mailer: inbox.mailer, secret: 'a secret of the node', userFields, ...options,
  })
  const { port } = new URL(await usher.app.listen({ port: 0, host: '127.0.0.1' }))
  // Browsers have passkeys on this host without https.
  const url = `http://localhost:${port}`
  const script = await (bundled ??= bundlePage(app))
  const html = `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Notes</title>
<link rel="icon" href="data:,"><style>body { font-family: sans-serif }${css}</style><main></main><script type="module" src="/app.js"></script></html>`

  /** Opens a page of the app with a new profile. */
  async function open (path: string, prepare?: (page: Page) => Promise<void>) {
    const watched = await openPage(t, 'about:blank')
    const { page } = watched
    await page.route(`${url}/app/**`, (route) => route.fulfill({ contentType: 'text/html', body: html }))
    await page.route(`${url}/app.js`, (route) => route.fulfill({ contentType: 'text/javascript', body: script }))
    await prepare?.(page)
    await page.goto(`${url}${path}`)
    return watched
  }

  /** Opens a page of the app as a user who has logged in. */
  async function openAs (user: { email: string, password: string }, path: string) {
    const watched = await open('/app/sign-in')
    await logIn(watched.page, user)
    await watched.page.getByText('You are logged in as').waitFor()
    await watched.page.goto(`${url}${path}`)
    return watched
  }
  return { ...usher, inbox, url, open, openAs, sql: openSql(t, usher) }
}

/** Fills in the login of the app. */
export async function logIn (page: Page, { email, password }: { email: string, password: string }): Promise<void> {
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
}
