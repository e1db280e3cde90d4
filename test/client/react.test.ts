import { createElement as h, StrictMode, type ComponentType } from 'react'
import { renderToString } from 'react-dom/server'
import t from 'tap'
import { createUsherClient } from '../../client/index.ts'
import {
  Account, readFields, readValues, SignIn, SignUp, useAccount, useApiKeys, useFiles, useIdentities, usePassword,
  usePasskeys, useProfile, UserButton, useProviders, useSecondFactor, useSession, useSessions, UsherProvider, useStepUp,
  useUser,
} from '../../client/react.ts'
import { userFields } from '../helpers/user-fields.ts'

function createSilentClient () {
  const sent: string[] = []
  const fetch = async ({ url }: Request) => {
    sent.push(url)
    return new Response()
  }
  return { client: createUsherClient({ baseUrl: 'http://127.0.0.1:1', fetch }), sent }
}

const render = (component: ComponentType) =>
  renderToString(h(StrictMode, null, h(component))).replaceAll('<!-- -->', '')

t.test('15.4 a server renders the hooks for React without a session, and sends nothing', async (t) => {
  const { client, sent } = createSilentClient()
  const Page = () => h('p', {}, useSession(client).state, useUser(client)?.name ?? ' nobody')
  t.equal(render(Page), '<p>unknown nobody</p>')
  const hooks = {
    useAccount,
    useApiKeys,
    useFiles,
    useIdentities,
    usePassword,
    usePasskeys,
    useProfile,
    useProviders,
    useSecondFactor,
    useSessions,
    useStepUp,
  }
  for (const [name, use] of Object.entries(hooks)) {
    const All = () => {
      const { data, error, isLoading } = use(client)
      return h('p', {}, JSON.stringify([data ?? null, error ?? null, isLoading]))
    }
    t.equal(render(All), '<p>[null,null,true]</p>', name)
  }
  t.same(sent, [])
})

t.test('15.6 a server renders the components without a window, and sends nothing', async (t) => {
  const { client, sent } = createSilentClient()
  const show = (component: ComponentType) =>
    render(() => h(UsherProvider, { client, fields: userFields }, h(component)))
  t.match(show(() => h(SignIn, { signUpUrl: '/sign-up' })), /<form[^]*type="password"[^]*href="\/sign-up"/)
  t.match(show(SignUp), /<form[^]*name="bio"[^]*type="checkbox"[^>]*name="newsletter"/)
  t.match(show(Account), 'Loading')
  t.equal(show(UserButton), '<div data-usher="user-button"></div>')
  t.same(sent, [])
})

t.test('15.6 texts of the app replace those of the components', async (t) => {
  const { client } = createSilentClient()
  const texts = { logIn: 'Anmelden', password: 'Passwort' }
  const page = render(() => h(UsherProvider, { client, texts }, h(SignIn, { className: 'card' })))
  t.match(page, /^<div data-usher="sign-in" class="card">[^]*>Passwort<[^]*type="submit">Anmelden</)
  t.match(page, 'E-mail address')
})

t.test('15.6 a hook without a client says what is missing', async (t) => {
  t.throws(() => render(() => h('p', {}, useSessions().data?.length)), /render <UsherProvider> above/)
})

t.test('15.6 forms have the fields that their user may write, of the kinds that they can show', async (t) => {
  const fields = readFields(userFields)
  t.strictSame(fields.map(({ name, kind, hint }) => [name, kind, hint]), [
    ['bio', 'text', 'A text about the user'], ['phone', 'text', undefined], ['newsletter', 'boolean', undefined],
  ])
  const others = readFields({
    properties: {
      level: { enum: ['low', 'high'], title: 'Level', 'x-write': 'owner' },
      about: { type: 'string', maxLength: 2000, 'x-write': 'owner' },
      age: { type: 'integer', minimum: 0, 'x-write': 'owner' },
      site: { type: 'string', format: 'uri', 'x-write': 'owner' },
    },
  })
  t.match(others, [
    { kind: 'choice', label: 'Level', options: ['low', 'high'] },
    { kind: 'lines', attributes: { maxLength: 2000 } },
    { kind: 'number', attributes: { type: 'number', step: 1, min: 0 } },
    { kind: 'text', attributes: { type: 'url' } },
  ])
  const form = new FormData()
  for (const [name, value] of Object.entries({ level: 'high', about: '', age: '36', site: 'https://example.com' })) {
    form.set(name, value)
  }
  const former = { about: 'A countess', site: 'https://example.com' }
  t.strictSame(readValues(others, form, former), { level: 'high', about: null, age: 36 })
  form.set('newsletter', 'on')
  t.strictSame(readValues(fields, form, { bio: 'x', phone: '1' }), { bio: null, phone: null, newsletter: true })
})
