// What is stored about the user: downloading it, and deleting the account.
import { openPage } from './account.js'
import { announce, Failure, onSubmit, onUse, texts } from './page.js'
import { call, leave } from './session.js'

const find = (selector) => document.querySelector(selector)
const alert = find('#data-alert')
const status = find('#data-status')
const deletion = find('#deletion')
const form = find('#deletion-form')

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
const accountName = () => user.email ?? user.name
const fold = (text) => text.trim().toLowerCase()

onUse(find('#delete-account'), 'click', alert, async () => {
  status.textContent = ''
  form.reset()
  find('#deletion-alert').textContent = ''
  find('#deletion-account').textContent = accountName()
  deletion.showModal()
  find('#deletion-title').focus()
})
onUse(find('#deletion-cancel'), 'click', find('#deletion-alert'), async () => deletion.close())

onSubmit(form, async ({ address }) => {
  if (fold(address) !== fold(accountName())) throw new Failure(texts.deleteOther)
  await call('DELETE', `users/${user.id}`).catch((error) => {
    // Another page may have deleted it already.
    if (!(error instanceof Failure) || error.status !== 404) throw error
  })
  await leave('?deleted')
})

await openPage(async (given) => { user = given })
