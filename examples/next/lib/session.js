import { cookies } from 'next/headers'
import { redirect } from 'next/navigation'
import { createUsherClient } from 'usher-client'
import { continueUrl, usher } from './usher.js'

/** The cookie in which this app keeps the access token for its server. Scripts cannot read it. */
export const TOKEN = 'app_token'

/** Returns the user of a request, or undefined. Usher rejects the token of a session that has ended. */
export async function getUser () {
  const token = (await cookies()).get(TOKEN)?.value
  if (token === undefined) return undefined
  const headers = { Authorization: `Bearer ${token}` }
  const { data } = await createUsherClient({ baseUrl: usher }).get('/api/protected', { headers })
  return data?.user
}

/** Returns the user of a request for a page that only users see. Others come to the login, and then back. */
export async function requireUser (path) {
  return await getUser() ?? redirect(continueUrl(path))
}
