import { readFileSync } from 'node:fs'
import { build } from 'esbuild'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { createUsher } from '../helpers/app.ts'
import { addAuthenticator, openPage, openRow, withoutOffers } from '../helpers/browser.ts'
import { openSql } from '../helpers/sql.ts'

const root = new URL('../..', import.meta.url).pathname
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

/** How password managers replace the credential of a browser. */
const shapes = {
  'inherited members that throw': 'inherited',
  'no toJSON': 'plain',
  'a toJSON without what is needed': 'empty',
  'views of a larger buffer': 'views',
} as const
type Shape = typeof shapes[keyof typeof shapes]

/**
 * Lets pages that are opened from now on see a browser whose credentials a password manager replaces, and which cannot
 * read the options as JSON.
 */
async function replaceCredentials (page: Page, shape: Shape): Promise<void> {
  await page.addInitScript((shape) => {
    const fail = () => { throw new TypeError('Illegal invocation') }
    Object.assign(PublicKeyCredential, { parseCreationOptionsFromJSON: fail, parseRequestOptionsFromJSON: fail })
    const toView = (buffer: ArrayBuffer) => {
      const larger = new Uint8Array(buffer.byteLength + 7)
      larger.set(new Uint8Array(buffer), 3)
      return new DataView(larger.buffer, 3, buffer.byteLength)
    }
    const own = (genuine: object, names: string[]) => Object.fromEntries(names.map((name) => {
      const value: unknown = genuine[name as never]
      return [name, shape === 'views' && value instanceof ArrayBuffer ? toView(value) : value]
    }))
    // What it has itself can be read, and what it inherits throws.
    const copy = (genuine: PublicKeyCredential) => {
      const members = ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle']
      const isInherited = shape === 'inherited'
      const make = (given: object, values: object) => {
        const made = Object.create(isInherited ? Object.getPrototypeOf(given) : Object.prototype)
        for (const [name, value] of Object.entries(values)) Object.defineProperty(made, name, { value })
        return made
      }
      const response = make(
        genuine.response, own(genuine.response, members.filter((name) => name in genuine.response))
      )
      const credential = make(genuine, { ...own(genuine, ['id', 'rawId', 'type']), response })
      if (shape === 'empty') credential.toJSON = () => ({})
      return credential
    }
    const { credentials } = navigator
    for (const name of ['create', 'get'] as const) {
      const genuine = credentials[name].bind(credentials) as (options: object) => Promise<PublicKeyCredential>
      credentials[name] = async (options) => copy(await genuine(options!))
    }
  }, shape)
}

// Browsers have passkeys on this host without https.
async function serve (t: Test) {
  const usher = await createUsher(t, { prefix: '/accounts' })
  const { port } = new URL(await usher.app.listen({ port: 0, host: '127.0.0.1' }))
  return { ...usher, sql: openSql(t, usher), url: `http://localhost:${port}${usher.prefix}` }
}

for (const [name, shape] of Object.entries(shapes)) {
  t.test(`16.3 a passkey that a password manager has replaced, with ${name}: added, logged in and confirmed with`, async (t) => {
    const { url, createUser, sql } = await serve(t)
    const user = await createUser()
    const { page } = await openPage(t, `${url}/login`)
    await addAuthenticator(page)
    await withoutOffers(page)
    await replaceCredentials(page, shape)
    await page.getByLabel('E-mail address').fill(user.email)
    await page.getByLabel('Password', { exact: true }).fill(user.password)
    await button(page, 'Log in').first().click()
    await page.waitForURL(`${url}/account`)
    await page.goto(`${url}/account/security`)
    await openRow(page, 'passkeys')
    await button(page, 'Add a passkey').click()
    await page.getByText('The passkey is added.').waitFor()
    await button(page, 'Log out').click()
    await button(page, 'Log in with a passkey').click()
    await page.waitForURL(`${url}/account`)
    await page.goto(`${url}/account/security`)

    await sql`update sessions set auth_time = now() - interval '1 day' where user_id = ${user.id}`
    await openRow(page, 'passkeys')
    await page.locator('#passkeys [data-menu]').click()
    await page.getByRole('button', { name: /^Remove / }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('dialog', { name: 'Confirm that it is you' }).getByRole('button', { name: 'Use a passkey' }).click()
    await page.getByText('The passkey is removed.').waitFor()
  })
}

t.test('16.3 the code of docs/passkeys.md adds a passkey and logs in with it, whatever a password manager replaces', async (t) => {
  const snippets = [...readFileSync(`${root}docs/passkeys.md`, 'utf8').matchAll(/```js\n([^]*?)```/g)].map(([, code]) => code!)
  t.equal(snippets.length, 2)
  const { outputFiles: [script] } = await build({
    stdin: {
      contents: `const api = '/accounts/api'
        let token
        const call = (path, options) => fetch(api + path, { ...options, headers: { ...options.headers, authorization: 'Bearer ' + token } })
        ${snippets.join('\n')}
        Object.assign(globalThis, { addPasskey, logInByPasskey, useToken (given) { token = given } })`,
      resolveDir: root,
    },
    alias: { 'usher-client': `${root}client/index.ts` },
    bundle: true,
    format: 'iife',
    write: false,
  })
  const { url, createUser } = await serve(t)
  const user = await createUser()
  const { page } = await openPage(t, `${url}/favicon.svg`)
  await addAuthenticator(page)
  await replaceCredentials(page, 'inherited')
  await page.goto(`${url}/login`)
  await page.evaluate(script!.text)
  const [status, loggedIn] = await page.evaluate(async (token) => {
    const { addPasskey, logInByPasskey, useToken } =
      globalThis as never as Record<string, (given?: unknown) => Promise<any>>
    await useToken!(token)
    const { status } = await addPasskey!()
    return [status, await logInByPasskey!()]
  }, user.headers.authorization.slice('Bearer '.length))
  t.equal(status, 201)
  t.equal(loggedIn.user?.id, user.id, JSON.stringify(loggedIn))
})
