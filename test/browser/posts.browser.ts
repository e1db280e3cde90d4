/// <reference lib="dom" />
import t from 'tap'
import { post } from '../helpers/graphql.ts'
import { bundlePage, openReactApp } from '../helpers/react-app.ts'

// Shows the titles of the posts of a user, and keeps the actions for the test.
const script = await bundlePage(`
import { createElement as h, StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { createUsherClient } from 'usher-client'
import { usePosts, UsherProvider } from 'usher-client/react'

const client = createUsherClient({ baseUrl: '/accounts' })
function Posts ({ authorId }) {
  const { data = [], isLoading, error, ...actions } = globalThis.list = usePosts({ authorId, limit: 2 })
  return h('ul', { 'aria-busy': isLoading }, data.map(({ id, title, isPending }) => h('li', { key: id }, title, isPending && ' …')))
}
Object.assign(globalThis, {
  client,
  mount: (authorId) => createRoot(document.querySelector('main'))
    .render(h(StrictMode, null, h(UsherProvider, { client }, h(Posts, { authorId })))),
})
`)

interface List {
  data: { id: string, title: string }[]
  hasMore: boolean
  create (post: object): Promise<unknown>
  update (id: string, changes: object): Promise<unknown>
  remove (id: string): Promise<void>
  loadMore (): Promise<void>
}
declare const list: List
declare const client: { login (credentials: object): Promise<unknown> }
declare function mount (authorId: string): void

t.test('22.1 a list of posts in React stays in step with the server, and shows writes at once', async (t) => {
  const app = await openReactApp(t)
  const user = await app.createUser({ name: 'Ada' })
  const write = async (query: string, variables: object) => {
    const { data, errors } = await post(app, { query, variables }, user)
    if (errors) throw new Error(JSON.stringify(errors))
    return data
  }
  const CREATE = 'mutation ($title: String!) { createPost(input: { title: $title, content: "" }) { id } }'
  const ids: string[] = []
  for (const title of ['One', 'Two', 'Three']) ids.push((await write(CREATE, { title })).createPost.id)
  const { page, problems } = await app.open('/app/sign-in', async (page) => {
    await page.route(`${app.url}/app.js`, (route) => route.fulfill({ contentType: 'text/javascript', body: script }))
  })
  await page.waitForFunction(() => 'mount' in globalThis)
  await page.evaluate(async ({ email, password, id }) => {
    await client.login({ email, password })
    mount(id)
  }, user)
  const shows = (titles: string[]) => page.waitForFunction(
    (titles) => [...document.querySelectorAll('li')].map(({ textContent }) => textContent).join() === titles, titles.join()
  )
  await shows(['Three', 'Two'])
  t.equal(await page.evaluate(() => list.hasMore), true)
  await page.evaluate(() => list.loadMore())
  await shows(['Three', 'Two', 'One'])

  await t.test('22.1 of what others do', async (t) => {
    await write('mutation ($id: ID!, $title: String) { updatePost(id: $id, input: { title: $title }) { id } }', {
      id: ids[0], title: 'One, changed',
    })
    await shows(['Three', 'Two', 'One, changed'])
    await write('mutation ($id: ID!) { deletePost(id: $id) }', { id: ids[1] })
    await shows(['Three', 'One, changed'])
    await write(CREATE, { title: 'Four' })
    t.ok(await shows(['Four', 'Three', 'One, changed']))
  })

  await t.test('22.1 of what the page does, before the server has answered', async (t) => {
    const held = Promise.withResolvers<void>()
    await page.route(`${app.url}/accounts/graphql`, async (route) => {
      if (route.request().postData()?.includes('mutation')) await held.promise
      await route.fallback()
    })
    const done = page.evaluate((id) => Promise.all([
      list.create({ title: 'Five', content: '' }), list.update(id, { title: 'Three, changed' }), list.remove(list.data[2]!.id),
    ]).then(() => {}), ids[2]!)
    await shows(['Five …', 'Four', 'Three, changed …'])
    held.resolve()
    await done
    await shows(['Five', 'Four', 'Three, changed'])
    const failure = await page.evaluate(() => list.create({ title: ' ', content: '' }).then(() => '', ({ message }) => message))
    t.match(failure, /title/)
    await shows(['Five', 'Four', 'Three, changed'])
  })
  await t.test('22.1 a response that arrives late does not bring back what an event has changed', async (t) => {
    const held = Promise.withResolvers<void>()
    await page.route(`${app.url}/accounts/graphql`, async (route) => {
      if (!route.request().postData()?.includes('createPost')) return route.fallback()
      const response = await route.fetch()
      await held.promise
      await route.fulfill({ response })
    })
    const created = page.evaluate(() => list.create({ title: 'Six', content: '' }).then(() => {}))
    await shows(['Six', 'Five', 'Four', 'Three, changed'])
    const id = await page.evaluate(() => list.data[0]!.id)
    await write('mutation ($id: ID!) { deletePost(id: $id) }', { id })
    await page.waitForFunction((id) => list.data.every((post) => post.id !== id), id)
    held.resolve()
    await created
    t.ok(await shows(['Five', 'Four', 'Three, changed']))
  })
  t.strictSame(problems.filter((problem) => !/status of 40[01]/.test(problem)), [])
})
