// What is stored about the user: downloading it, and deleting the account.
import { announce, Failure, onUse, texts } from './page.js'
import { call, confirm, leave } from './session.js'

const find = (selector) => document.querySelector(selector)
const alert = find('#data-alert')
const status = find('#data-status')

let user

/** Says whose data they are. */
export function showData (given) {
  user = given
}

onUse(find('#export'), 'click', alert, async () => {
  status.textContent = ''
  const content = await call('GET', `users/${user.id}/export`)
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([JSON.stringify(content, null, 2)], { type: 'application/json' }))
  link.download = `${location.hostname}-${new Date().toISOString().slice(0, 10)}.json`
  link.click()
  URL.revokeObjectURL(link.href)
  announce(status, texts.exportDone)
})

onUse(find('#delete-account'), 'click', alert, async () => {
  status.textContent = ''
  await confirm(texts.deleteConfirm, find('#delete-account').textContent)
  await call('DELETE', `users/${user.id}`).catch((error) => {
    // Another page may have deleted it already.
    if (!(error instanceof Failure) || error.status !== 404) throw error
  })
  await leave('?deleted')
})
