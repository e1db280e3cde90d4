import { html, type Html } from '../../../html.ts'
import type { View } from '../view.ts'
import { accountPage, lead, menu, outcomes } from './frame.ts'

/** Returns the page of the files of a user. */
export const showFiles = accountPage('/account/files', (view: View): Html => {
  const { t } = view
  return html`${lead(t.filesHint)}
<div class="card">
${outcomes('files')}
<div class="empty" id="files-none" hidden><p class="strong">${t.filesNone}</p></div>
<ul class="list" id="files" hidden></ul>
<template id="file">
<li><div class="row"><div class="main">
<p class="title" data-name></p>
<p class="hint"><span data-visibility></span> · <span data-size></span> · <time></time></p></div>
${menu(view, html`<button type="button" data-toggle></button>
<button type="button" data-share aria-expanded="false">${t.fileLinks}</button>
<button type="button" data-delete>${t.fileDelete}</button>`)}</div>
<div data-links hidden>
<p data-links-none>${t.linksNone}</p>
<ul class="list"></ul>
<form>
<p role="alert" class="alert error"></p>
<div class="field"><label data-for="name">${t.linkName}</label>
<input name="name" autocomplete="off"></div>
<div class="field"><label data-for="seconds">${t.linkDuration}</label>
<select name="seconds" autocomplete="off"><option value="3600">${t.linkHour}</option>
<option value="86400">${t.linkDay}</option><option value="604800">${t.linkWeek}</option></select></div>
<button>${t.linkCreate}</button>
</form>
<div data-created hidden>
<p role="status" class="status" tabindex="-1">${t.linkOnce}</p>
<p><code class="copied"></code></p>
</div>
</div>
</li>
</template>
<template id="file-link">
<li><div class="row"><div class="main">
<p class="title" data-name></p>
<p class="hint">${t.linkUntil}: <time></time><span data-key></span></p></div>
<button type="button" class="plain small">${t.linkRevoke}</button></div></li>
</template>
<button type="button" class="plain more" id="files-more" hidden>${t.filesMore}</button>
</div>`
})
