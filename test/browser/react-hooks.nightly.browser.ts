/// <reference lib="dom" />
import type { Page, Request } from 'playwright-core'
import t, { type Test } from 'tap'
import { bundlePage, openReactApp } from '../helpers/react-app.ts'

// Keeps what the hooks return, so that the tests can use it. Two components use the same hook.
const script = await bundlePage(`
import { createElement as h, StrictMode, useEffect } from 'react'
import { createRoot } from 'react-dom/client'
import { createUsherClient } from 'usher-client'
import { useFiles, usePasskeys, useProviders, useSecondFactor, useSessions, useStepUp, UsherProvider } from 'usher-client/react'

const client = createUsherClient({ baseUrl: '/accounts' })
const hooks = { useFiles, usePasskeys, useProviders, useSecondFactor, useSessions, useStepUp }
const used = {}
const renders = {}
function Use ({ name }) {
  used[name] = hooks[name]()
  useEffect(() => { renders[name] = (renders[name] ?? 0) + 1 })
  return h('output', null, JSON.stringify(used[name].data ?? null))
}
let root
Object.assign(globalThis, {
  client, used, renders,
  mount: (...names) => {
    root ??= createRoot(document.querySelector('main'))
    root.render(h(StrictMode, null, h(UsherProvider, { client }, names.map((name, index) => h(Use, { key: index, name })))))
  },
})
`)

interface Loaded {
  data?: unknown
  error?: unknown
  isLoading: boolean
  reload (): Promise<void>
  [action: string]: unknown
}
declare const client: {
  login (credentials: object): Promise<unknown>
  session: { token (): Promise<string> }
}
declare const used: Record<string, Loaded>
declare const renders: Record<string, number>
declare function mount (...names: string[]): void

async function openHooks (t: Test) {
  const app = await openReactApp(t)
  const sent: string[] = []
  const { page, problems } = await app.open('/app/sign-in', async (page) => {
    await page.route(`${app.url}/app.js`, (route) => route.fulfill({ contentType: 'text/javascript', body: script }))
  })
  page.on('response', (response) => {
    sent.push(`${response.request().method()} ${new URL(response.url()).pathname} ${response.status()}`)
  })
  const user = await app.createUser({ name: 'Ada' })
  await page.waitForFunction(() => 'mount' in globalThis)
  const logIn = () => page.evaluate(({ email, password }) => client.login({ email, password }), user)
  const count = (text: string) => sent.filter((line) => line.startsWith(text)).length
  return { ...app, page, problems, user, logIn, count }
}

const loaded = (page: Page, name: string) =>
  page.waitForFunction((name) => used[name]?.isLoading === false && used[name]?.data !== undefined, name)

t.test('15.6 components share what a hook has loaded: once, and revalidated', async (t) => {
  const { page, problems, logIn, count } = await openHooks(t)
  await logIn()
  await page.evaluate(() => mount('useSessions', 'useSessions'))
  await loaded(page, 'useSessions')
  t.equal(count('GET /accounts/api/auth/sessions'), 1, 'also in Strict Mode')
  t.equal(new Set(await page.locator('output').allTextContents()).size, 1)
  const [isSame, more] = await page.evaluate(async () => {
    const [{ data }, before] = [used['useSessions']!, renders['useSessions']!]
    await used['useSessions']!.reload()
    return [data === used['useSessions']!.data, renders['useSessions']! - before]
  })
  t.equal(isSame, true)
  t.ok(more <= 4, `${more} renders of two components, for the request and its answer`)
  t.equal(count('GET /accounts/api/auth/sessions 304'), 1)
  t.strictSame(problems.filter((problem) => !/status of 401/.test(problem)), [])
})

t.test('15.6 what is loaded is that of the user, and without a session there is nothing', async (t) => {
  const { page, logIn, createUser, inject } = await openHooks(t)
  await page.evaluate(() => mount('useSessions', 'useProviders'))
  await page.waitForFunction(() => used['useSessions']?.isLoading === false)
  t.strictSame(await page.evaluate(() => used['useSessions']!.data ?? null), null)
  t.strictSame(await page.evaluate(() => used['useProviders']!.data), [], 'nobody has to log in for it')
  await logIn()
  await loaded(page, 'useSessions')
  const ids = () => page.evaluate(() => (used['useSessions']!.data as { id: string }[]).map(({ id }) => id))
  const former = await ids()
  t.ok(former.length > 0)
  const other = await createUser({ name: 'Grace' })
  await page.evaluate(({ email, password }) => client.login({ email, password }), other)
  await loaded(page, 'useSessions')
  const listed = (await inject('GET', '/api/auth/sessions', { headers: other.headers })).json()
  t.strictSame(await ids(), listed.map(({ id }: { id: string }) => id))
  t.notOk(former.some((id) => listed.some((session: { id: string }) => session.id === id)))
})

t.test('15.6 the request of a component that is unmounted is aborted', async (t) => {
  const { page, problems, logIn, url } = await openHooks(t)
  await logIn()
  let release = () => {}
  await page.route(`${url}/accounts/api/auth/sessions`, async (route) => {
    await new Promise<void>((resolve) => { release = resolve })
    await route.continue().catch(() => {})
  })
  const started = page.waitForRequest(/auth\/sessions$/)
  const failed = new Promise<Request>((resolve) => page.on('requestfailed', resolve))
  await page.evaluate(() => mount('useSessions'))
  await started
  await page.evaluate(() => mount())
  t.match((await failed).failure()?.errorText, 'ERR_ABORTED')
  release()
  t.strictSame(problems.filter((problem) => !/status of 401/.test(problem)), [])
})

t.test('15.6 a failure of loading is an error of the client, and reload tries again', async (t) => {
  const { page, logIn, url } = await openHooks(t)
  await logIn()
  await page.route(`${url}/accounts/api/auth/passkeys`, (route) => route.fulfill({
    status: 403, contentType: 'application/json', body: '{ "error": "No", "code": "FORBIDDEN" }',
  }))
  await page.evaluate(() => mount('usePasskeys'))
  await page.waitForFunction(() => used['usePasskeys']?.error !== undefined)
  t.strictSame(await page.evaluate(() => {
    const { name, code, status } = used['usePasskeys']!.error as { name: string, code: string, status: number }
    return { name, code, status }
  }), { name: 'UsherError', code: 'FORBIDDEN', status: 403 })
  await page.unroute(`${url}/accounts/api/auth/passkeys`)
  await page.evaluate(() => used['usePasskeys']!.reload())
  t.strictSame(await page.evaluate(() => [used['usePasskeys']!.data, used['usePasskeys']!.error ?? null]), [[], null])
})

t.test('15.6 files come in pages, and an upload says how far it is and happens once', async (t) => {
  const { page, logIn, user, inject, url, count } = await openHooks(t)
  await logIn()
  await page.evaluate(() => mount('useFiles'))
  await loaded(page, 'useFiles')
  let lost = 0
  await page.route(`${url}/accounts/api/uploads`, async (route) => {
    if (route.request().method() !== 'POST' || lost++ > 0) return route.continue()
    // The file is stored, and the browser does not learn it.
    await route.fetch()
    await route.abort()
  })
  const parts = await page.evaluate(async () => {
    const parts: number[] = []
    const upload = used['useFiles']!['upload'] as (file: File, options: object) => Promise<unknown>
    await upload(new File(['x'.repeat(200_000)], 'x.txt'), {
      visibility: 'private', onProgress: (part: number) => parts.push(part),
    })
    return parts
  })
  t.equal(parts.at(-1), 1)
  t.equal(lost, 2)
  const list = async () => (await inject('GET', '/api/uploads', { headers: user.headers })).json()
  t.match(await list(), [{ filename: 'x.txt', size: 200_000, visibility: 'private' }])
  t.equal((await list()).length, 1)

  await page.evaluate(async () => {
    const upload = used['useFiles']!['upload'] as (file: File) => Promise<unknown>
    for (let index = 0; index < 21; index++) await upload(new File([`${index}`], `${index}.txt`))
  })
  t.equal(await page.evaluate(() => (used['useFiles']!.data as []).length), 20, 'a page')
  const shown = await page.evaluate(async () => {
    await (used['useFiles']!['loadMore'] as () => Promise<void>)()
    return [(used['useFiles']!.data as []).length, used['useFiles']!['hasMore']]
  })
  t.strictSame(shown, [22, false])
  t.ok(count('GET /accounts/api/uploads') > 2)
})

t.test('15.6 an action waits for step-up, and rejects if the component is unmounted', async (t) => {
  const { page, logIn, user, sql, inject } = await openHooks(t)
  await logIn()
  await sql`update sessions set auth_time = now() - interval '1 day' where user_id = ${user.id}`
  await page.evaluate(() => mount('useStepUp', 'useSecondFactor'))
  await loaded(page, 'useSecondFactor')
  const run = () => page.evaluate(() => {
    const { run } = used['useStepUp'] as unknown as { run (action: unknown): Promise<{ secret: string }> }
    Object.assign(globalThis, {
      result: run(used['useSecondFactor']!['startTotp']).then(
        ({ secret }) => typeof secret, (error: { code: string }) => error.code)
    })
  })
  const result = () => page.evaluate(() => (globalThis as never as { result: Promise<string> }).result)
  await run()
  await page.waitForFunction(() => used['useStepUp']!['isNeeded'] && used['useStepUp']!.data)
  t.equal(await page.evaluate(() => (used['useStepUp']!['confirm'] as (proof: object) => Promise<void>)({
    password: 'a wrong password',
  }).catch(({ code }: { code: string }) => code)), 'WRONG_PASSWORD')
  t.equal(await page.evaluate(() => used['useStepUp']!['isNeeded']), true)
  await page.evaluate((password) => (used['useStepUp']!['confirm'] as (proof: object) => Promise<void>)({ password }),
    user.password)
  t.equal(await result(), 'string')
  t.equal(await page.evaluate(() => used['useStepUp']!['isNeeded']), false)

  await sql`update sessions set auth_time = now() - interval '1 day' where user_id = ${user.id}`
  await run()
  await page.waitForFunction(() => used['useStepUp']!['isNeeded'])
  await page.evaluate(() => mount('useSecondFactor'))
  t.equal(await result(), 'STEP_UP_REQUIRED')
  t.equal((await inject('GET', '/api/auth/second-factor', { headers: user.headers })).json().totp, null)
})
