// A login that waits for the second factor, from the page on which it has begun to that of the login, in this tab. Some
// browsers forbid the storage; then the login begins again.
const KEY = 'usher-challenge'

export function keepLogin (given) {
  try {
    sessionStorage.setItem(KEY, JSON.stringify(given))
  } catch {}
}

/** Returns what was kept, once. */
export function takeLogin () {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEY))
    sessionStorage.removeItem(KEY)
    return kept
  } catch {
    return null
  }
}
