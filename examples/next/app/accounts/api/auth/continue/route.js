import { TOKEN } from '../../../../../lib/session.js'
import { localPath, usher } from '../../../../../lib/usher.js'

// The browser sends the cookie of the session to paths below /accounts/api/auth only, of which this is one. Here, the
// server gets a token by it, and keeps that in a cookie of its own for all pages.
export async function GET (request) {
  const returnTo = localPath(request.nextUrl.searchParams.get('returnTo'))
  const refreshed = await fetch(`${usher}/api/auth/refresh`, {
    method: 'POST',
    headers: {
      cookie: request.headers.get('cookie') ?? '',
      'user-agent': request.headers.get('user-agent') ?? '',
      // Usher limits attempts by the address of the client. It believes this of proxies that it trusts.
      'x-forwarded-for': request.headers.get('x-forwarded-for') ?? '',
    },
    cache: 'no-store',
  })
  if (!refreshed.ok) return goTo(`/sign-in?returnTo=${encodeURIComponent(returnTo)}`)
  const { token, expiresIn } = await refreshed.json()
  // Browsers keep such a cookie on http://localhost, too. APP_INSECURE=1 is for http on another host.
  const secure = process.env.APP_INSECURE === undefined ? '; Secure' : ''
  return goTo(returnTo, [
    // The next cookie of the session.
    ...refreshed.headers.getSetCookie(),
    `${TOKEN}=${token}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${expiresIn}${secure}`,
  ])
}

function goTo (location, setCookies = []) {
  const headers = new Headers({ Location: location, 'Cache-Control': 'no-store' })
  for (const cookie of setCookies) headers.append('Set-Cookie', cookie)
  return new Response(null, { status: 303, headers })
}
