import { createUsherClient, unwrap } from 'usher-client'

const client = createUsherClient({ baseUrl: '/accounts' })
const $ = (id) => document.getElementById(id)
// Belongs to the second factor of a login.
let challenge

client.session.subscribe(show)
await attempt(() => client.session.restore())
show(client.session.current)

function show ({ user }) {
  $('login').hidden = Boolean(user)
  $('second-factor').hidden = true
  $('member').hidden = !user
  if (!user) return
  $('name').textContent = user.name
  attempt(listSessions)
}

async function listSessions () {
  const sessions = await unwrap(client.get('/api/auth/sessions'))
  $('sessions').replaceChildren(...sessions.map(({ id, address, current }) => {
    const item = document.createElement('li')
    item.append(address, ' ', current ? '(this one)' : createButton('End', () => end(id)))
    return item
  }))
}

async function end (id) {
  await unwrap(client.delete('/api/auth/sessions/{id}', { params: { path: { id } } }))
  await listSessions()
}

function createButton (text, action) {
  const button = Object.assign(document.createElement('button'), { textContent: text })
  button.addEventListener('click', () => attempt(action))
  return button
}

function onSubmit (id, action) {
  $(id).addEventListener('submit', (event) => {
    event.preventDefault()
    attempt(() => action(Object.fromEntries(new FormData(event.target))))
  })
}

onSubmit('login', async (credentials) => {
  try {
    await client.login(credentials)
  } catch (error) {
    if (error.code !== 'SECOND_FACTOR_REQUIRED') throw error
    challenge = error.challenge
    $('login').hidden = true
    $('second-factor').hidden = false
    $('second-factor').elements.code.focus()
  }
})
onSubmit('second-factor', ({ code }) => client.completeLogin({ challenge, code }))
$('logout').addEventListener('click', () => attempt(() => client.logout()))

async function attempt (action) {
  $('failure').textContent = ''
  try {
    await action()
  } catch (error) {
    $('failure').textContent = error.message
  }
}
