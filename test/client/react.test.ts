import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import t from 'tap'
import { createUsherClient } from '../../client/index.ts'
import { useSession, useUser } from '../../client/react.ts'

t.test('15.4 a server renders the hooks for React without a session, and sends nothing', async (t) => {
  const sent: string[] = []
  const fetch = async ({ url }: Request) => {
    sent.push(url)
    return new Response()
  }
  const client = createUsherClient({ baseUrl: 'http://127.0.0.1:1', fetch })
  const Page = () => createElement('p', {}, useSession(client).state, useUser(client)?.name ?? ' nobody')
  t.equal(renderToString(createElement(Page)).replaceAll('<!-- -->', ''), '<p>unknown nobody</p>')
  t.same(sent, [])
})
