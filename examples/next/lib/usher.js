/** Where the server of this app reaches Usher. `next build` writes it into the rewrites. */
export const usher = process.env.USHER_URL ?? 'http://127.0.0.1:3000'

/** Where the browser gets a session for the server of this app, and comes back from to a page. */
export const continueUrl = (path) => `/accounts/api/auth/continue?returnTo=${encodeURIComponent(path)}`

/** Returns a path of this site. Everything else, such as `//example.com`, becomes `/`. */
export function localPath (path) {
  const base = 'http://site.invalid'
  const url = new URL(path ?? '/', base)
  return url.origin === base ? url.pathname + url.search : '/'
}
