import { html, type Html } from '../../../html.ts'
import type { View } from '../view.ts'
import { accountPage, lead, outcomes } from './frame.ts'

/** Returns the page of the sessions of a user. */
export const showSessions = accountPage('/account/sessions', ({ t }: View): Html => html`${lead(t.sessionsHint)}
<div class="card">
${outcomes('sessions')}
<ul class="list" id="sessions" aria-labelledby="title"></ul>
<template id="session">
<li><div class="row"><div class="main">
<p class="title"><span class="device" data-device></span></p>
<p class="hint"><span class="badge success" data-current>${t.thisSession}</span> <span data-address></span> · <span data-used></span></p></div>
<button type="button" class="plain small">${t.endSession}</button></div></li>
</template>
<div class="actions"><button type="button" class="plain" id="end-others" hidden>${t.endOthers}</button>
<button type="button" class="plain" id="log-out-everywhere">${t.logOutEverywhere}</button></div>
</div>`)
