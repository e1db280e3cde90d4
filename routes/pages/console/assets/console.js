// The console works without this script, which saves a visitor a button, and gives a failure the focus.
document.getElementById('open')?.submit()

// On a phone, the tabs do not fit.
document.querySelector('.tabs [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })

const failure = document.querySelector('[aria-invalid=true], .alert.error:not([hidden]), .alert.warning')
if (failure) {
  if (!failure.matches('input, select, textarea')) failure.tabIndex = -1
  failure.focus()
}
