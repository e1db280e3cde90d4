import type { Texts } from '../../../../../schema/translations/en.ts'
import { formMembers, hasLines, members, type Member } from '../../../../../schema/users/members.ts'
import { attributes, html, type Html } from '../../../html.ts'
import type { View } from '../view.ts'
import { accountPage, lead } from './frame.ts'

/** Returns the page of what a user says about the own person. */
export const showProfile = accountPage('/account', (view: View): Html => {
  const { t, v } = view
  return html`${lead(view.f(t.profileHint, { product: v.productName }))}
<p role="status" class="alert warning" id="typed-kept"></p>
${v.canVerify && html`<div id="unverified" class="alert warning" hidden><p>${t.unverified}</p><button type="button" class="plain small" id="verify">${t.verifySend}</button></div>
<p role="alert" class="alert error" id="verification-alert"></p>
<p role="status" class="status" id="verification-status"></p>`}
<div class="card">
<form id="profile">
<p role="alert" class="alert error" id="profile-alert"></p>
<p role="status" class="status"></p>
${memberFields(t)}
<div class="field"><label for="email">${t.email}</label>
${v.canVerify && html`<p class="hint" id="email-hint">${t.emailHint}</p>`}
<input id="email" name="email" type="email" autocomplete="email" autocapitalize="none" spellcheck="false" required
  aria-describedby="${v.canVerify && html`email-hint `}email-error" data-kept data-member${v.canVerify && html` data-deferred`}>
<p class="field-error" role="alert" id="email-error"></p></div>
${v.profileFields}
<button>${t.saveButton}</button>
</form>
</div>
${v.shownFields && html`<div class="card" id="shown-fields" hidden><h2>${view.f(t.factsTitle, { product: v.productName })}</h2>
<dl class="facts">${v.shownFields}</dl></div>`}`
})

// The members that users write, in the order of the table.
const memberFields = (t: Texts): Html[] => formMembers.flatMap((name) => {
  const { form, input }: Member = members[name]
  if (!form?.page) return []
  const { required, page: { label, autocomplete } } = form
  const ofField = attributes({
    id: name, name, autocomplete, required, 'aria-describedby': `${name}-error`, 'data-kept': true, 'data-member': true,
  })
  return html`<div class="field"><label for="${name}">${t[label]}</label>
${hasLines(input) ? html`<textarea${ofField}></textarea>` : html`<input${ofField}>`}
<p class="field-error" role="alert" id="${name}-error"></p></div>`
})
