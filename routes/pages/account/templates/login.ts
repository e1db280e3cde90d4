import { html, type Html } from '../../html.ts'
import { icon } from '../icons.ts'
import { accountOf } from './account-of.ts'
import { passwordInput } from './password-input.ts'
import type { View } from './view.ts'

/** Returns the login, with its steps: the first factor, a mail, its code or link, and the second factor. */
export function showLogin (view: View): Html {
  const { t, v } = view
  return html`<p role="status" class="${v.noticeClass}" tabindex="-1">${v.notice}</p>
<div class="alert info" id="logged-in" hidden><p class="strong" id="logged-in-as"></p>
<div class="actions"><a class="button" href="${v.returnTo}">${t.continueButton}</a>
<button type="button" class="plain" id="log-out">${t.logOut}</button></div>
<p class="hint">${t.otherAccount}</p></div>
${firstFactor(view)}${v.byMail && html`${askForMail(view)}${mailCode(view)}${mailLink(view)}`}
${secondFactor(view)}`
}

const firstFactor = ({ t, v, f }: View): Html => html`<div data-step="first"${(v.challenge || v.showsMail || v.showsMailCode || v.showsMailLink) && html` hidden`}>
<form method="post" action="${v.root}${v.loginUrl}" id="password-form" data-return-to="${v.returnTo}">
<p role="alert" class="alert error" id="alert">${v.alert}</p>
<div class="field"><label for="email">${t.email}</label>
<input id="email" name="email" type="email" value="${v.typedEmail}" autocomplete="username webauthn"
  autocapitalize="none" spellcheck="false" required${!v.passwordError && html` autofocus`}${v.emailError && html`${v.passwordError && html` autofocus`} aria-invalid="true"`}
  aria-describedby="email-error alert">
<p class="field-error" role="alert" id="email-error">${v.emailError}</p></div>
<div class="field with-aside"><label for="password">${t.password}</label>
${passwordInput(t, {
  id: 'password',
  name: 'password',
  autocomplete: 'current-password',
  'aria-describedby': 'password-error',
  autofocus: Boolean(v.passwordError && !v.emailError),
  'aria-invalid': v.passwordError ? 'true' : undefined,
})}
<a class="aside" href="${v.root}${v.forgotUrl}">${t.forgotTitle}</a>
<p class="field-error" role="alert" id="password-error">${v.passwordError}</p></div>
<button class="wide">${t.logIn}</button>
</form>
${otherWays({ t, v, f })}
${v.signUpUrl && html`<p class="other">${f(t.signUpAsk, { product: v.productName })} <a href="${v.root}${v.signUpUrl}">${t.signUpTitle}</a></p>`}
</div>
`

// Without JavaScript, passkeys are missing, so there may be nothing below the line.
const otherWays = ({ t, v }: View): Html | undefined => {
  const { canUsePasskeys, loginMailUrl, providers } = v
  if (!canUsePasskeys && !loginMailUrl && !providers) return undefined
  return html`<div id="ways"${!loginMailUrl && !providers && html` hidden`}><p class="divider">${t.orWith}</p>
<div class="ways">${canUsePasskeys && html`<button type="button" class="plain" id="passkey" aria-label="${t.passkeyLogIn}"
  hidden>${icon('passkey')}${t.passkeyWay}</button>`}
${loginMailUrl && html`<a class="button plain" href="${v.root}${loginMailUrl}" id="by-mail" aria-label="${t.loginMailLink}">${icon('mail')}${t.mailWay}</a>`}
${providers}</div></div>`
}

const askForMail = ({ t, v }: View): Html => html`<div data-step="mail"${!v.showsMail && html` hidden`}>
<form method="post" action="${v.root}${v.loginMailUrl}" id="mail-form">
<p>${t.loginMailHint}</p>
<p role="alert" class="alert error" id="mail-alert">${v.mailAlert}</p>
<div class="field"><label for="mail-email">${t.email}</label>
<input id="mail-email" name="email" type="email" value="${v.typedEmail}" autocomplete="username"
  autocapitalize="none" spellcheck="false" required${v.showsMail && html` autofocus`}
  aria-describedby="mail-email-error mail-alert">
<p class="field-error" role="alert" id="mail-email-error"></p></div>
<button class="wide">${t.loginMailButton}</button>
</form>
<p class="other"><a href="${v.root}${v.loginUrl}">${t.loginMailOther}</a></p>
</div>
`

const mailCode = ({ t, v }: View): Html => html`<div data-step="mail-code"${!v.showsMailCode && html` hidden`}>
<p class="alert info" id="mail-sent" data-sent="${t.loginMailSentTo}">${v.mailSentText}</p>
<form method="post" action="${v.root}${v.mailCodeUrl}" id="mail-code-form">
<input type="hidden" name="loginId" value="${v.loginId}">
<div class="field"><label for="mail-code">${t.mailCode}</label>
<p class="hint" id="mail-code-hint">${t.mailCodeHint}</p>
<input id="mail-code" name="code" class="code" inputmode="numeric" autocomplete="one-time-code" autocapitalize="none"
  spellcheck="false" required${v.showsMailCode && html` autofocus`}
  aria-describedby="mail-code-hint mail-code-alert">
<p role="alert" class="field-error" id="mail-code-alert">${v.mailCodeAlert}</p>
</div>
<button class="wide">${t.logIn}</button>
</form>
<p role="status" class="status" id="mail-again-status"></p>
<div class="actions"><button type="button" class="plain" id="send-again" hidden>${t.sendAgain}</button>
<a class="button plain" href="${v.root}${v.loginMailUrl}" id="wrong-address">${t.wrongAddress}</a></div>
<p class="other"><a href="${v.root}${v.loginUrl}">${t.loginMailOther}</a></p>
</div>
`

const mailLink = ({ t, v }: View): Html => html`<div data-step="mail-link"${!v.showsMailLink && html` hidden`}>
${v.showsMailLink && html`<noscript><p class="alert error">${t.loginMailNeedsJavaScript}</p></noscript>
<p class="alert error late" id="scripts-missing">${t.scriptsMissing}</p>`}
<div role="alert">
<div data-state="missing" hidden><p class="alert error">${t.linkMissing}</p>
<div class="actions"><a class="button" href="${v.root}${v.loginMailUrl}">${t.loginMailAgain}</a></div></div>
<div data-state="invalid" hidden>
<p class="alert error">${t.linkInvalid}</p>
<div class="actions"><a class="button" href="${v.root}${v.loginMailUrl}">${t.loginMailAgain}</a></div>
</div>
</div>
<form id="mail-link-form" data-state="form" hidden>
<p role="alert" class="alert error" id="mail-link-alert"></p>
<p>${t.loginMailAs}</p>
<p class="strong"><bdi id="mail-account"></bdi></p>
<p class="alert warning" id="mail-elsewhere" hidden>${t.loginMailElsewhere}</p>
<p class="alert warning" id="mail-removes" hidden>${t.loginMailRemoves}</p>
<button class="wide" aria-describedby="mail-account">${t.logIn}</button>
</form>
<p class="other"><a href="${v.root}${v.loginUrl}">${t.loginMailOther}</a></p>
</div>`

const secondFactor = ({ t, v, f }: View): Html => html`<div data-title="${t.secondFactorTitle}" data-step="second"${!v.challenge && html` hidden`}>
<p class="lead">${f(t.secondFactorHint, { product: v.productName })}</p>
${accountOf(t, v.typedEmail)}
<form method="post" action="${v.root}${v.secondFactorUrl}" id="code-form">
<input type="hidden" name="challenge" value="${v.challenge}">
<div class="field"><label for="code">${t.code}</label>
<p class="hint" id="code-hint">${t.codeHint}</p>
<input id="code" name="code" class="code" inputmode="numeric" autocomplete="one-time-code" autocapitalize="none"
  spellcheck="false" required${v.challenge && !v.recoveryAlert && html` autofocus`}
  aria-describedby="code-hint code-alert">
<p role="alert" class="field-error" id="code-alert">${v.codeAlert}</p>
</div>
<button class="wide">${t.logIn}</button>
</form>
${v.canUsePasskeys && html`<button type="button" class="plain wide" id="second-passkey"
  data-methods="${v.methods}" hidden>${t.passkeyUse}</button>`}
<details id="recovery"${v.recoveryAlert && html` open`}>
<summary>${t.recoveryUse}</summary>
<form method="post" action="${v.root}${v.secondFactorUrl}" id="recovery-form">
<input type="hidden" name="challenge" value="${v.challenge}">
<div class="field"><label for="recovery-code">${t.recoveryCode}</label>
<p class="hint" id="recovery-hint">${t.recoveryHint}</p>
<input id="recovery-code" name="recoveryCode" class="code" autocomplete="off" autocapitalize="none"
  spellcheck="false" required${v.recoveryAlert && html` autofocus`}
  aria-describedby="recovery-hint recovery-alert">
<p role="alert" class="field-error" id="recovery-alert">${v.recoveryAlert}</p>
</div>
<button class="plain wide">${t.logIn}</button>
</form>
</details>
<p class="other"><a href="${v.root}${v.loginUrl}">${t.loginAgain}</a></p>
</div>
`
