// The accounts at providers.
import { announce, failureText, onUse, texts } from './page.js'
import { call, confirm } from './session.js'
import { showState } from './state.js'

const NOT_FOUND = 404
const find = (selector) => document.querySelector(selector)
const days = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'medium' })
// Missing where the service has no providers.
const section = find('#identities-section')
const status = find('#identities-status')
const alert = find('#identities-alert')

// Without what the provider's answer has added.
const here = () => location.pathname

// Sends the browser to a provider. Never resolves, because another page is loading.
async function link (id) {
  const { url } = await call('POST', `auth/providers/${id}/link`, { returnTo: here() })
  location.assign(url)
  return new Promise(() => {})
}

/** Shows the linked accounts, and a button for each provider. */
export async function showIdentities () {
  if (!section) return
  const [providers, list] = await Promise.all([call('GET', 'auth/providers'), call('GET', 'auth/identities')])
  const nameOf = (id) => providers.find((provider) => provider.id === id)?.name ?? id
  find('#identities').hidden = list.length === 0
  find('#identities-none').hidden = list.length > 0
  showState('identities', list.length)
  find('#identities').replaceChildren(...list.map((identity) => toItem(identity, nameOf(identity.provider))))
  find('#identities-add').replaceChildren(...providers.map(({ id, name }) => {
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'plain'
    const mark = markOf(id)
    button.append(...mark ? [mark] : [], texts.identityLink.replace('{provider}', () => name))
    onUse(button, 'click', alert, () => link(id))
    return button
  }))
}

function toItem (identity, provider) {
  const item = find('#identity').content.cloneNode(true)
  const name = item.querySelector('[data-name]')
  name.id = `identity-${identity.id}`
  const mark = markOf(identity.provider)
  name.append(...mark ? [mark] : [], identity.email === null ? provider : `${provider}: ${identity.email}`)
  item.querySelector('[data-created]').textContent = days.format(new Date(identity.createdAt))
  const remove = item.querySelector('[data-remove]')
  remove.id = `remove-${identity.id}`
  remove.setAttribute('aria-labelledby', `${remove.id} ${name.id}`)
  onUse(remove, 'click', alert, async () => {
    status.textContent = ''
    await confirm(texts.identityRemoveConfirm, remove.textContent)
    // Another page may have removed it already.
    await call('DELETE', `auth/identities/${identity.id}`)
      .catch((error) => error.status === NOT_FOUND ? undefined : Promise.reject(error))
    await showIdentities()
    announce(status, texts.identityRemoved)
  })
  return item
}

// A provider that the options no longer name has none.
const markOf = (id) => find(`[data-mark="${id}"]`)?.content.cloneNode(true)

/** Says why the provider that the user comes from has not done what was asked for, and forgets it. */
export function explainReturn () {
  const error = new URL(location.href).searchParams.get('error')
  if (error === null || !section) return
  history.replaceState(null, '', here())
  section.open = true
  alert.textContent = failureText(error)
  section.scrollIntoView()
}
