// What a user logs in with: a password, passkeys, an authenticator app, and accounts at providers.
import { logOut, openPage } from './account.js'
import { explainReturn, showIdentities } from './identities.js'
import { onSubmit, onUse, texts } from './page.js'
import { call } from './session.js'
import { showState } from './state.js'
import { showStrength } from './strength.js'
import { requireFactor, showWays } from './ways.js'

const find = (selector) => document.querySelector(selector)
const form = find('#password-form')

let user

onSubmit(form, async ({ currentPassword, password }) => {
  form.querySelector('[role=status]').textContent = ''
  await call('PUT', 'auth/password', { currentPassword, password })
  form.reset()
  for (const field of document.querySelectorAll('[data-username]')) field.value = user.email ?? ''
  form.querySelector('[role=status]').textContent = texts.passwordChanged
})

onUse(find('#required-log-out'), 'click', find('#required-alert'), logOut)

// Whoever must have a second factor sees only how to get one, until then.
function showRest (isShown) {
  for (const section of document.querySelectorAll('[data-rest]')) section.hidden = !isShown
}

// How many there are, of what has a page of its own.
async function showCounts () {
  const [keys, sessions] = await Promise.all([call('GET', 'auth/keys'), call('GET', 'auth/sessions')])
  showState('keys', keys.length)
  showState('sessions', sessions.length)
}

async function showAll () {
  await Promise.all([showWays(), showIdentities(), showCounts()])
  showRest(true)
}

showStrength(() => [user.name, user.email ?? ''])
await openPage(async (given) => {
  user = given
  await showAll().catch((error) => {
    if (error.code !== 'SECOND_FACTOR_MISSING') throw error
    showRest(false)
    return requireFactor(showAll)
  })
})
explainReturn()
