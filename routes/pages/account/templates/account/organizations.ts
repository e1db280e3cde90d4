import { html, type Html } from '../../../html.ts'
import type { View } from '../view.ts'
import { deletionDialog } from './dialogs.ts'
import { accountPage, lead, menu, outcomes, part } from './frame.ts'

/**
 * Returns the page of the organisations of a user. The fragment of its address names the one that is open, and its
 * part: `#<id>/members`. A script shows the parts that the role of the user in it has something to do with.
 */
export const showOrganizations = accountPage('/account/organizations', (view: View): Html => {
  const { t, v } = view
  return html`<div id="all">
${lead(t.organizationsHint)}
${outcomes('organizations')}
<div class="card">
<div class="empty" id="organizations-none" hidden><p class="strong">${t.organizationsNone}</p></div>
<ul class="list" id="organizations" aria-labelledby="title" data-roles="${v.organizationRoles}"></ul>
<template id="organization">
<li><div class="row"><div class="main">
<p class="title"><a class="whole" data-open><bdi data-name></bdi></a></p>
<p class="hint"><bdi data-slug></bdi></p></div>
<span class="badge" data-role></span></div></li>
</template>
</div>
<details class="card fold" id="found-section" data-founders="${v.organizationFounders}" hidden><summary><h2 id="found-title">${t.organizationFound}</h2></summary>
<form id="found-form">
<p role="alert" class="alert error"></p>
${fields(view, 'found')}
${v.newOrganizationFields && html`<details class="fold"><summary>${t.optionalMore}</summary>${v.newOrganizationFields}</details>`}
<button>${t.organizationFoundButton}</button>
</form></details>
</div>
<div id="chosen" hidden>
<p class="back"><a href="#">${t.organizationsAll}</a></p>
<div class="page-title"><div class="heading"><h2><bdi id="chosen-name" tabindex="-1"></bdi></h2> <span class="badge" id="chosen-role"></span></div>
<button type="button" class="plain small" data-leave>${t.organizationLeave}</button></div>
${v.organizationFacts && html`<div class="card" id="chosen-facts" hidden><dl class="facts" aria-labelledby="chosen-name">${v.organizationFacts}</dl></div>`}
<nav class="tabs" id="parts" aria-labelledby="chosen-name"><ul>
<li><a data-part="members">${t.membersTitle}</a></li>
${v.canVerify && html`<li><a data-part="invitations">${t.invitationsTitle}</a></li>`}
<li><a data-part="settings">${t.organizationSettings}</a></li></ul></nav>
${outcomes('chosen')}
${members(view)}
${v.canVerify && invitations(view)}
<div id="settings-section">
${part('change', t.organizationChange, html`<form id="change-form">
<p role="alert" class="alert error"></p>
${fields(view, 'change')}
${v.organizationFields}
<button>${t.saveButton}</button>
</form>`)}
${part('remove', t.organizationDelete, html`<div class="actions"><button type="button" class="plain danger" id="delete-organization">${t.organizationDelete}</button></div>`, {
  hint: t.organizationDeleteHint,
})}
</div>
</div>
${deletionDialog(view, { title: t.organizationDelete, label: t.organizationDeleteType }, html`<p>${t.organizationDeleteHint}</p>`)}`
})

const fields = ({ t, f }: View, id: string): Html => html`<div class="field"><label for="${id}-name">${t.organizationName}</label>
<input id="${id}-name" name="name" autocomplete="off" required aria-describedby="${id}-name-error">
<p class="field-error" role="alert" id="${id}-name-error"></p></div>
<div class="field"><label for="${id}-slug">${f(t.optional, { label: t.organizationSlug })}</label>
<p class="hint" id="${id}-slug-hint">${t.organizationSlugHint}</p>
<input id="${id}-slug" name="slug" autocomplete="off" autocapitalize="none" spellcheck="false" minlength="3"
  aria-describedby="${id}-slug-hint ${id}-slug-error">
<p class="field-error" role="alert" id="${id}-slug-error"></p></div>`

const members = (view: View): Html => {
  const { t } = view
  return part('members', t.membersTitle, html`<form id="search-form">
<p role="alert" class="alert error"></p>
<div class="inline-form"><div class="field"><label for="search">${t.memberSearch}</label>
<input id="search" name="q" type="search" autocomplete="off" minlength="2"></div>
<button class="plain">${t.memberSearchButton}</button></div>
</form>
<p class="muted" id="members-none" hidden>${t.membersNone}</p>
<ul class="list" id="members" aria-labelledby="members-title"></ul>
<template id="member">
<li><div class="row"><div class="main">
<p class="title"><bdi data-name></bdi> <span class="badge success" data-you>${t.memberYou}</span></p>
<p class="hint"><bdi data-email></bdi></p></div>
<span class="badge" data-role></span>
${menu(view, html`<label><span class="hint">${t.organizationRole}</span><select autocomplete="off"></select></label>
<button type="button" data-remove>${t.memberRemove}</button>`)}</div></li>
</template>
<button type="button" class="plain more" id="members-more" hidden>${t.filesMore}</button>`)
}

const invitations = ({ t }: View): Html => part('invitations', t.invitationsTitle, html`<form id="invitation-form">
<p role="alert" class="alert error"></p>
<div class="inline-form"><div class="field"><label for="invited-email">${t.email}</label>
<input id="invited-email" name="email" type="email" autocomplete="off" autocapitalize="none" spellcheck="false" required
  aria-describedby="invited-email-error">
<p class="field-error" role="alert" id="invited-email-error"></p></div>
<div class="field"><label for="invited-role">${t.organizationRole}</label>
<select id="invited-role" name="role" autocomplete="off"></select></div>
<button>${t.inviteButton}</button></div>
</form>
<p class="muted" id="invitations-none">${t.invitationsNone}</p>
<ul class="list" id="invitations" aria-labelledby="invitations-title"></ul>
<template id="invitation">
<li><div class="row"><div class="main">
<p class="title"><bdi data-email></bdi> <span class="badge" data-role></span></p>
<p class="hint">${t.linkUntil}: <time></time></p></div>
<button type="button" class="plain small" data-withdraw>${t.invitationWithdraw}</button></div></li>
</template>
<button type="button" class="plain more" id="invitations-more" hidden>${t.filesMore}</button>`)
