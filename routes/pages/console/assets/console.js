// The console works without this script. With it, the user of a session can open the console without a password, if
// the authentication is recent, and a failure gets the focus.
const place = document.getElementById('exchange')

if (place) {
  const { refresh, exchange, next } = place.dataset
  const error = document.getElementById('exchange-error')
  const button = document.getElementById('continue')
  const post = (url, headers = {}) => fetch(url, { method: 'POST', headers })

  button.addEventListener('click', async () => {
    button.setAttribute('aria-busy', 'true')
    error.hidden = true
    try {
      const refreshed = await post(refresh)
      if (!refreshed.ok) throw new Error('You are not logged in. Choose another way.')
      const { token } = await refreshed.json()
      const response = await post(exchange, { authorization: `Bearer ${token}` })
      if (response.ok) return location.assign(next)
      throw new Error(response.status === 403
        ? 'You have logged in too long ago. Log in here, or choose another way.'
        : 'There is nothing here for this account.')
    } catch ({ message }) {
      error.textContent = message
      error.hidden = false
    } finally {
      button.removeAttribute('aria-busy')
    }
  })
  place.hidden = false
}

// On a phone, the tabs do not fit.
document.querySelector('.tabs [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })

const failure = document.querySelector('[aria-invalid=true], .alert.error:not([hidden]), .alert.warning')
if (failure) {
  if (!failure.matches('input, select, textarea')) failure.tabIndex = -1
  failure.focus()
}
