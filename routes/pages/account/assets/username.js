// The address that was typed on another page in this tab, for password managers. Some browsers forbid the storage.
const KEY = 'usher-username'

export function rememberUsername (address) {
  try {
    sessionStorage.setItem(KEY, address)
  } catch {}
}

export function recallUsername () {
  try {
    return sessionStorage.getItem(KEY) ?? ''
  } catch {
    return ''
  }
}
