import { html, type Html } from '../../../html.ts'
import type { View } from '../view.ts'
import { deletionDialog } from './dialogs.ts'
import { accountPage, lead, outcomes, part } from './frame.ts'

/** Returns the page of what is stored about a user. */
export const showData = accountPage('/account/data', (view: View): Html => {
  const { t, v } = view
  return html`${lead(view.f(t.dataHint, { product: v.productName }))}
${outcomes('data')}
${part('export', t.exportTitle, html`<div class="actions"><button type="button" class="plain" id="export">${t.exportButton}</button></div>`, {
  hint: t.exportHint,
})}
${part('delete', t.deleteTitle, html`<div class="actions"><button type="button" class="plain danger" id="delete-account">${t.deleteButton}</button></div>`, {
  hint: t.deleteHint, danger: true,
})}
${deletion(view)}`
})

const deletion = (view: View): Html => {
  const { t, v, f } = view
  return deletionDialog(view, { title: t.deleteTitle, label: t.deleteType, button: t.deleteButton }, html`<p>${
    f(t.deleteWhat, { product: v.productName })}</p>
<ul class="bullets">
<li>${t.deleteProfile}</li>
${v.hasFiles && html`<li>${t.deleteFiles}</li>`}
${v.hasPosts && html`<li>${t.deletePosts}</li>`}
<li>${t.deleteSessions}</li>
</ul>
<p class="strong">${t.deleteForGood}</p>`)
}
