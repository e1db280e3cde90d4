// Passkeys, and an authenticator app with its recovery codes.
import { announce, format, nameMenu, onSubmit, onUse, texts } from './page.js'
import { createPasskey, isSupported } from './passkeys.js'
import { toImage } from './qr-code.js'
import { call, confirm, setToken, stepUp } from './session.js'
import { showState } from './state.js'

const NOT_FOUND = 404
const find = (selector) => document.querySelector(selector)
const days = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: 'medium' })
// Missing where the service has no passkeys for this address.
const section = find('#passkeys-section')
const passkeysStatus = find('#passkeys-status')
const totpStatus = find('#totp-status')
const setUp = find('#totp-set-up')
const codes = find('#recovery-codes')

// Runs when a factor may have become enough for the rest of the page.
let onFactor = async () => {}

// Another page may have removed it already.
const ignoreMissing = (error) => error.status === NOT_FOUND ? undefined : Promise.reject(error)

const dayOf = (instant) => days.format(new Date(instant))

/** Shows the passkeys and the authenticator app. */
export async function showWays () {
  await Promise.all([showPasskeys(), showTotp()])
}

/**
 * Shows only what somebody needs who must have a second factor before anything else works.
 * @param then runs when the session has one
 */
export async function requireFactor (then) {
  onFactor = then
  const factors = await showTotp()
  const isUnused = factors.totp !== null || factors.passkeys > 0
  find('#required').hidden = false
  find('#required-text').textContent = isUnused ? texts.factorUnused : texts.factorRequired
  find('#required-confirm').hidden = !isUnused
  for (const section of document.querySelectorAll('details.setting')) section.open = true
}

async function endRequirement () {
  find('#required').hidden = true
  const then = onFactor
  onFactor = async () => {}
  await then()
}

async function showPasskeys () {
  if (!section) return
  const list = await call('GET', 'auth/passkeys')
  find('#passkeys').hidden = list.length === 0
  find('#passkeys-none').hidden = list.length > 0
  showState('passkeys', list.length)
  find('#passkeys').replaceChildren(...list.map(toItem))
}

function toItem (passkey) {
  const item = find('#passkey').content.cloneNode(true)
  const [show, form] = [item.querySelector('[data-show]'), item.querySelector('form')]
  const name = item.querySelector('[data-name]')
  name.id = `passkey-${passkey.id}`
  name.textContent = passkey.name
  nameMenu(show, passkey.name)
  item.querySelector('[data-created]').textContent = dayOf(passkey.createdAt)
  item.querySelector('[data-used]').textContent =
    passkey.lastUsedAt === null ? texts.passkeyNeverUsed : dayOf(passkey.lastUsedAt)
  for (const action of ['rename', 'remove']) {
    const button = item.querySelector(`[data-${action}]`)
    button.id = `${action}-${passkey.id}`
    button.setAttribute('aria-labelledby', `${button.id} ${name.id}`)
  }
  const field = form.querySelector('input')
  field.id = `name-${passkey.id}`
  form.querySelector('label').htmlFor = field.id

  const open = (isOpen) => {
    form.hidden = !isOpen
    show.hidden = isOpen
  }
  const rename = item.querySelector('[data-rename]')
  const alert = find('#passkeys-alert')
  onUse(rename, 'click', alert, async () => {
    field.value = passkey.name
    open(true)
    field.select()
  })
  onUse(item.querySelector('[data-cancel]'), 'click', alert, async () => {
    open(false)
    show.querySelector('summary').focus()
  })
  onSubmit(form, async ({ name }) => {
    await call('PATCH', `auth/passkeys/${passkey.id}`, { name })
    await showPasskeys()
    announce(passkeysStatus, texts.passkeyRenamed)
  })
  const remove = item.querySelector('[data-remove]')
  onUse(remove, 'click', alert, async () => {
    await confirm(texts.passkeyRemoveConfirm, remove.textContent)
    await call('DELETE', `auth/passkeys/${passkey.id}`).catch(ignoreMissing)
    await showPasskeys()
    announce(passkeysStatus, texts.passkeyRemoved)
  })
  return item
}

async function showTotp () {
  const factors = await call('GET', 'auth/second-factor')
  const isActive = factors.totp !== null
  find('#totp-none').hidden = isActive
  find('#totp-active').hidden = !isActive
  if (isActive) find('#totp-since').textContent = dayOf(factors.totp.confirmedAt)
  find('#recovery-left').textContent = format(texts.recoveryLeft, { count: factors.recoveryCodesLeft })
  find('#password-form').hidden = !factors.password
  find('#password-none').hidden = factors.password
  showState('password', factors.password)
  showState('totp', isActive)
  return factors
}

function closeSetUp () {
  setUp.hidden = true
  setUp.reset()
  find('#totp-qr-code').replaceChildren()
  find('#totp-secret').textContent = ''
  find('#totp-uri').removeAttribute('href')
}

function showCodes (given) {
  find('#recovery-list').replaceChildren(...given.map((code) => {
    const item = document.createElement('li')
    item.textContent = code
    return item
  }))
  find('#recovery-status').textContent = ''
  find('#totp-active').hidden = true
  find('#totp-none').hidden = true
  codes.hidden = false
  find('#recovery-title').focus()
}

if (section) {
  const add = find('#passkey-add')
  add.hidden = !isSupported
  onUse(add, 'click', find('#passkeys-alert'), async () => {
    passkeysStatus.textContent = ''
    const credential = await createPasskey(await call('POST', 'auth/passkeys/options'))
    if (!credential) return announce(passkeysStatus, texts.passkeyNotAdded)
    await call('POST', 'auth/passkeys', { credential })
    if (!find('#required').hidden) {
      // The session starts to count as authenticated by both factors when the new one is used.
      await requireFactor(onFactor)
      await stepUp({ isFactorNeeded: true })
      await endRequirement()
    }
    await showPasskeys()
    announce(passkeysStatus, texts.passkeyAdded)
  })
}

onUse(find('#totp-start'), 'click', find('#totp-alert'), async () => {
  totpStatus.textContent = ''
  const { secret, uri, qrCode } = await call('POST', 'auth/totp')
  const place = find('#totp-qr-code')
  place.replaceChildren(toImage(qrCode, place.dataset.label))
  // In groups, because people type it.
  find('#totp-secret').textContent = secret.match(/.{1,4}/g).join(' ')
  find('#totp-uri').href = uri
  find('#totp-none').hidden = true
  setUp.hidden = false
  setUp.querySelector('input').focus()
})

onUse(find('#totp-cancel'), 'click', find('#totp-alert'), async () => {
  closeSetUp()
  find('#totp-none').hidden = false
  find('#totp-start').focus()
})

onSubmit(setUp, async ({ code }) => {
  const { recoveryCodes, token } = await call('POST', 'auth/totp/confirm', { code })
  setToken(token)
  closeSetUp()
  showCodes(recoveryCodes)
  totpStatus.textContent = texts.totpActive
})

onUse(find('#totp-remove'), 'click', find('#totp-alert'), async () => {
  await confirm(texts.totpRemoveConfirm, find('#totp-remove').textContent)
  await call('DELETE', 'auth/totp').catch(ignoreMissing)
  await showTotp()
  announce(totpStatus, texts.totpRemoved)
})

onUse(find('#recovery-new'), 'click', find('#totp-alert'), async () => {
  totpStatus.textContent = ''
  await confirm(texts.recoveryNewConfirm, find('#recovery-new').textContent)
  showCodes((await call('POST', 'auth/recovery-codes')).recoveryCodes)
})

const copy = find('#recovery-copy')
copy.hidden = navigator.clipboard === undefined
onUse(copy, 'click', find('#totp-alert'), async () => {
  const lines = Array.from(find('#recovery-list').children, (item) => item.textContent)
  await navigator.clipboard.writeText(lines.join('\n'))
  find('#recovery-status').textContent = texts.recoveryCopied
})
onUse(find('#recovery-print'), 'click', find('#totp-alert'), async () => print())

onUse(find('#recovery-done'), 'click', find('#totp-alert'), async () => {
  codes.hidden = true
  find('#recovery-list').replaceChildren()
  totpStatus.textContent = ''
  if (!find('#required').hidden) await endRequirement()
  await showTotp()
  find('#totp-title').focus()
})

onUse(find('#required-confirm'), 'click', find('#required-alert'), async () => {
  await stepUp({ isFactorNeeded: true })
  await endRequirement()
  find('#title').focus()
})
