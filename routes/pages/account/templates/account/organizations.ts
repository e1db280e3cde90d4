import { html, type Html } from '../../../html.ts'
import type { View } from '../view.ts'
import { accountPage, lead, outcomes, part } from './frame.ts'

/**
 * Returns the page of the organisations of a user. One of them is open at a time. A script shows the parts that the
 * role of the user in it has something to do with.
 */
export const showOrganizations = accountPage('/account/organizations', (view: View): Html => {
  const { t, v } = view
  return html`${lead(t.organizationsHint)}
${outcomes('organizations')}
<div class="card">
<div class="empty" id="organizations-none" hidden><p class="strong">${t.organizationsNone}</p></div>
<ul class="list" id="organizations" aria-labelledby="title" data-roles="${v.organizationRoles}"></ul>
<template id="organization">
<li><div class="row"><div class="main">
<p class="title"><bdi data-name></bdi> <span class="badge" data-role></span></p>
<p class="hint"><bdi data-slug></bdi></p></div>
<div class="actions"><button type="button" class="plain small" data-open aria-expanded="false">${t.organizationOpen}</button>
<button type="button" class="plain small" data-leave>${t.organizationLeave}</button></div></div></li>
</template>
</div>
<div id="chosen" hidden>
<h2><bdi id="chosen-name" tabindex="-1"></bdi></h2>
${outcomes('chosen')}
${members(view)}
${v.canVerify && invitations(view)}
${part('change', t.organizationChange, html`<form id="change-form">
<p role="alert" class="alert error"></p>
${fields(view, 'change')}
<button>${t.saveButton}</button>
</form>`)}
${part('remove', t.organizationDelete, html`<div class="actions"><button type="button" class="plain danger" id="delete-organization">${t.organizationDelete}</button></div>`, {
  hint: t.organizationDeleteHint, danger: true,
})}
</div>
${part('found', t.organizationFound, html`<form id="found-form">
<p role="alert" class="alert error"></p>
${fields(view, 'found')}
<button>${t.organizationFoundButton}</button>
</form>`, { attributes: { hidden: true, 'data-founders': v.organizationFounders } })}
${deletion(view)}`
})

const fields = ({ t, f }: View, id: string): Html => html`<div class="field"><label for="${id}-name">${t.organizationName}</label>
<input id="${id}-name" name="name" autocomplete="off" required aria-describedby="${id}-name-error">
<p class="field-error" role="alert" id="${id}-name-error"></p></div>
<div class="field"><label for="${id}-slug">${f(t.optional, { label: t.organizationSlug })}</label>
<p class="hint" id="${id}-slug-hint">${t.organizationSlugHint}</p>
<input id="${id}-slug" name="slug" autocomplete="off" autocapitalize="none" spellcheck="false" minlength="3"
  aria-describedby="${id}-slug-hint ${id}-slug-error">
<p class="field-error" role="alert" id="${id}-slug-error"></p></div>`

const members = ({ t }: View): Html => part('members', t.membersTitle, html`<form id="search-form">
<p role="alert" class="alert error"></p>
<div class="field"><label for="search">${t.memberSearch}</label>
<input id="search" name="q" type="search" autocomplete="off" minlength="2"></div>
<button class="plain">${t.memberSearchButton}</button>
</form>
<p class="muted" id="members-none" hidden>${t.membersNone}</p>
<ul class="list" id="members" aria-labelledby="members-title"></ul>
<template id="member">
<li><div class="row"><div class="main">
<p class="title"><bdi data-name></bdi> <span class="badge" data-role></span> <span class="badge success" data-you>${t.memberYou}</span></p>
<p class="hint"><bdi data-email></bdi></p></div>
<div class="actions"><select autocomplete="off" aria-label="${t.organizationRole}"></select>
<button type="button" class="plain small" data-remove>${t.memberRemove}</button></div></div></li>
</template>
<p><button type="button" class="plain" id="members-more" hidden>${t.filesMore}</button></p>`)

const invitations = ({ t }: View): Html => part('invitations', t.invitationsTitle, html`<form id="invitation-form">
<p role="alert" class="alert error"></p>
<div class="field"><label for="invited-email">${t.email}</label>
<input id="invited-email" name="email" type="email" autocomplete="off" autocapitalize="none" spellcheck="false" required
  aria-describedby="invited-email-error">
<p class="field-error" role="alert" id="invited-email-error"></p></div>
<div class="field"><label for="invited-role">${t.organizationRole}</label>
<select id="invited-role" name="role" autocomplete="off"></select></div>
<button>${t.inviteButton}</button>
</form>
<p class="muted" id="invitations-none">${t.invitationsNone}</p>
<ul class="list" id="invitations" aria-labelledby="invitations-title"></ul>
<template id="invitation">
<li><div class="row"><div class="main">
<p class="title"><bdi data-email></bdi> <span class="badge" data-role></span></p>
<p class="hint">${t.linkUntil}: <time></time></p></div>
<button type="button" class="plain small" data-withdraw>${t.invitationWithdraw}</button></div></li>
</template>
<p><button type="button" class="plain" id="invitations-more" hidden>${t.filesMore}</button></p>`)

const deletion = ({ t }: View): Html => html`<dialog id="deletion" aria-labelledby="deletion-title">
<h2 id="deletion-title" tabindex="-1">${t.organizationDelete}</h2>
<p>${t.organizationDeleteHint}</p>
<form id="deletion-form">
<div class="field"><label for="deletion-name">${t.organizationDeleteType}</label>
<p class="hint" id="deletion-hint"><bdi id="deletion-organization"></bdi></p>
<input id="deletion-name" name="typed" autocomplete="off" autocapitalize="none" spellcheck="false" required
  aria-describedby="deletion-hint deletion-alert">
<p role="alert" class="field-error" id="deletion-alert"></p></div>
<div class="actions"><button class="danger">${t.organizationDelete}</button>
<button type="button" class="plain" id="deletion-cancel">${t.cancelButton}</button></div>
</form>
</dialog>`
