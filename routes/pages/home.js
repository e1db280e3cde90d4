// The page at / of a node: who is logged in, and what they may open. Only the service sees the cookie of a session.
const find = (selector) => document.querySelector(selector)

async function send (method, path) {
  const response = await fetch(`api/${path}`, { method })
  if (!response.ok) throw new Error(`${response.status}`)
  return response.json()
}

async function findUser () {
  try {
    const { isSent } = await send('GET', 'auth/pages/session')
    return isSent ? (await send('POST', 'auth/refresh')).user : undefined
  } catch {
    // The session has ended, or the login will say what is wrong.
    return undefined
  }
}

const user = await findUser()
const who = find('#who')
who.textContent = user
  ? who.dataset.in.replace('{name}', () => user.email ? `${user.name} (${user.email})` : user.name)
  : who.dataset.out
for (const element of document.querySelectorAll('[data-for]')) {
  const audience = user ? ['user', user.role] : ['nobody']
  element.hidden = !audience.includes(element.dataset.for)
}
