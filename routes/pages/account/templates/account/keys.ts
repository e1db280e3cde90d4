import { html, type Html } from '../../../html.ts'
import { showKeyActions } from '../../key-actions.ts'
import type { View } from '../view.ts'
import { accountPage, lead, menu, outcomes } from './frame.ts'

/** Returns the page of the API keys of a user. */
export const showKeys = accountPage('/account/keys', (view: View): Html => {
  const { t, v } = view
  return html`${lead(t.keysHint)}
<div class="card">
${outcomes('keys')}
<div class="empty" id="keys-none" hidden><p class="strong">${t.keysNone}</p></div>
<ul class="list" id="keys" hidden></ul>
<template id="key">
<li><div class="row"><div class="main">
<p class="title" data-name></p>
<p class="hint">${t.lastUsed}: <span data-used></span> · ${t.keyExpires}: <span data-expires></span></p></div>
${menu(view, html`<p class="hint">${t.keyCreated}: <span data-created></span></p>
<p class="hint" data-actions hidden></p>
<button type="button" data-delete>${t.keyDelete}</button>`)}</div></li>
</template>
<p id="key-start"><button type="button" id="key-new">${t.keyNew}</button></p>
<form id="key-form"${v.hasFiles && html` data-files`} hidden>
<p role="alert" class="alert error" id="key-alert"></p>
<div class="field"><label for="key-name">${t.keyName}</label>
<input id="key-name" name="name" autocomplete="off" required aria-describedby="key-name-error">
<p class="field-error" role="alert" id="key-name-error"></p></div>
<div class="field"><label for="key-expiry">${t.keyExpires}</label>
<select id="key-expiry" name="days" autocomplete="off">
<option value="30">${t.keyMonth}</option>
<option value="90" selected>${t.keyQuarter}</option>
<option value="365">${t.keyYear}</option>
<option value="">${t.keyNever}</option>
</select></div>
<details>
<summary>${t.keyActionsTitle}</summary>
<p class="hint">${t.keyActionsHint}</p>
<div id="key-actions">
${showKeyActions(v.keyActions ?? [], t)}</div>
</details>
<p class="actions"><button>${t.keyCreate}</button>
<button type="button" class="plain" id="key-cancel">${t.cancelButton}</button></p>
</form>
<div id="key-shown" hidden>
<h2 id="key-title" tabindex="-1">${t.keyShown}</h2>
<p>${t.keyOnce}</p>
<p><code class="copied" id="key-text"></code></p>
<p role="status" class="status" id="key-copied"></p>
<p class="actions"><button type="button" class="plain" id="key-copy">${t.recoveryCopy}</button>
<button type="button" id="key-done">${t.keyDone}</button></p>
</div>
</div>`
})
