import { getUser } from '../lib/session.js'

export default async function Page () {
  const user = await getUser()
  return user ? <p>Hello {user.name}. <a href='/notes'>Your notes</a></p> : <p><a href='/notes'>Log in</a></p>
}
