// The token of the link that has led to this page. It is in the fragment of the address, which browsers send neither to
// servers nor as a referrer, so no log contains it.
const storageKey = `usher-token ${location.pathname}`

// The address bar must not keep the token, because browsers synchronize their histories and open tabs, and people copy
// addresses. The storage of the tab keeps it until it is used, so that the page can be reloaded. Some browsers forbid
// the storage.
export function takeToken () {
  // Opening another link of the same kind in this tab only changes the fragment.
  addEventListener('hashchange', () => location.reload())
  const given = new URLSearchParams(location.hash.slice(1)).get('token')
  if (given === null) return read()
  history.replaceState(null, '', location.pathname + location.search)
  try {
    sessionStorage.setItem(storageKey, given)
  } catch {}
  return given
}

function read () {
  try {
    return sessionStorage.getItem(storageKey)
  } catch {
    return null
  }
}

/** Forgets the token, because it was used or is not valid. */
export function forgetToken () {
  try {
    sessionStorage.removeItem(storageKey)
  } catch {}
}

/** Shows the part of the page for a state of the link: `missing`, `invalid`, `form` or `done`. */
export function showState (state) {
  for (const element of document.querySelectorAll('[data-state]')) element.hidden = element.dataset.state !== state
}
