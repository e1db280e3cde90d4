// What is stored about the user: downloading it, and deleting the account.
import { openPage } from './account.js'
import { offerDeletion } from './deletion.js'
import { announce, Failure, onUse, texts } from './page.js'
import { call, leave } from './session.js'

const find = (selector) => document.querySelector(selector)
const alert = find('#data-alert')
const status = find('#data-status')

let user

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

// Who may not see the own address types the name.
offerDeletion(find('#delete-account'), alert, () => user.email ?? user.name, async () => {
  status.textContent = ''
  await call('DELETE', `users/${user.id}`).catch((error) => {
    // Another page may have deleted it already.
    if (!(error instanceof Failure) || error.status !== 404) throw error
  })
}, () => leave('?deleted'))

await openPage(async (given) => { user = given })
