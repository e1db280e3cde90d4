import { createUsherClient, unwrap } from 'usher-client'
import { followPosts, graphql } from 'usher-client/posts'

const client = createUsherClient({ baseUrl: '/accounts' })
const $ = (id) => document.getElementById(id)
// Stops following when the user changes.
let following

client.session.subscribe(showSession)
await client.session.restore()

function showSession ({ user, reason }) {
  following?.abort()
  $('login').hidden = Boolean(user)
  $('member').hidden = !user
  $('posts').replaceChildren()
  $('status').textContent = user
    ? `Logged in as ${user.name}`
    : reason === 'expired' ? 'The session is over: log in again' : 'Log in'
  if (!user) return
  following = new AbortController()
  attempt(listUsers)
  attempt(() => follow(following.signal))
}

async function listUsers () {
  // Revalidated: the server sends the list only if it has changed.
  const users = await unwrap(client.get('/api/users', { params: { query: { limit: 20 } } }))
  $('users').replaceChildren(...users.map(({ name }) => createItem(name)))
}

async function follow (signal) {
  for await (const { title } of followPosts(client, { signal })) $('posts').append(createItem(title))
}

function createItem (text) {
  return Object.assign(document.createElement('li'), { textContent: text })
}

$('login').addEventListener('submit', (event) => {
  event.preventDefault()
  attempt(() => client.login(Object.fromEntries(new FormData(event.target))))
})

$('create').addEventListener('submit', (event) => {
  event.preventDefault()
  const title = new FormData(event.target).get('title')
  event.target.reset()
  // Repeated with the same key if the response is lost, so there is one post.
  attempt(() => graphql(
    client, 'mutation ($title: String!) { createPost(input: { title: $title, content: "" }) { id } }', { title }
  ))
})

$('logout').addEventListener('click', () => attempt(() => client.logout()))
$('reload').addEventListener('click', () => attempt(listUsers))

async function attempt (action) {
  try {
    await action()
  } catch (error) {
    // The end of the session is shown already.
    if (client.session.current.state === 'active' || error.code !== 'INVALID_SESSION') {
      $('status').textContent = error.message
    }
  }
}

// For experiments in the console of the browser.
globalThis.client = client
