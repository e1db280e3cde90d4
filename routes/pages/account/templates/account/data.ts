import { html, type Html } from '../../../html.ts'
import type { View } from '../view.ts'
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

const deletion = ({ t, v, f }: View): Html => html`<dialog id="deletion" aria-labelledby="deletion-title">
<h2 id="deletion-title" tabindex="-1">${t.deleteTitle}</h2>
<p>${f(t.deleteWhat, { product: v.productName })}</p>
<ul class="bullets">
<li>${t.deleteProfile}</li>
${v.hasFiles && html`<li>${t.deleteFiles}</li>`}
${v.hasPosts && html`<li>${t.deletePosts}</li>`}
<li>${t.deleteSessions}</li>
</ul>
<p class="strong">${t.deleteForGood}</p>
<form id="deletion-form">
<div class="field"><label for="deletion-address">${t.deleteType}</label>
<p class="hint" id="deletion-hint"><bdi id="deletion-account"></bdi></p>
<input id="deletion-address" name="address" autocomplete="off" autocapitalize="none" spellcheck="false" required
  aria-describedby="deletion-hint deletion-alert">
<p role="alert" class="field-error" id="deletion-alert"></p></div>
<div class="actions"><button class="danger">${t.deleteButton}</button>
<button type="button" class="plain" id="deletion-cancel">${t.cancelButton}</button></div>
</form>
</dialog>`
