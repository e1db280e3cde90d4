import type { PageText } from '../../../../schema/options/page-texts.ts'
import { html, type Html } from '../../html.ts'
import type { View } from './view.ts'

/** The operations of a page to which mails link, below the prefix, and its texts. */
export interface MailLink {
  /** Checks the token. */
  check: string
  /** Uses it. */
  action: string
  /** The page that helps if the token is not valid, and the text of the link to it. */
  help: [path: string, text: PageText]
  /** What the page says then, if it is not that the link has expired or was used. */
  invalid?: PageText
  /** What the page says after success. */
  done: PageText
}

/** Returns what a page to which mails link has around the content of its form. */
export const aroundMailLink = (
  { t, v }: View, { check, action, help: [helpPath, helpText], invalid = 'linkInvalid', done }: MailLink, content: Html
): Html => html`<noscript><p class="alert error">${t.needsJavaScript}</p></noscript>
<p class="alert error late" id="scripts-missing">${t.scriptsMissing}</p>
<div role="alert">
<div data-state="missing" hidden><p class="alert error">${t.linkMissing}</p>
<div class="actions"><a class="button plain" href="${v.root}${helpPath}">${t[helpText]}</a></div></div>
<div data-state="invalid" hidden>
<p class="alert error">${t[invalid]}</p>
<p>${t.linkUsed}</p>
<div class="actions"><a class="button" href="${v.root}${v.loginUrl}">${t.logIn}</a>
<a class="button plain" href="${v.root}${helpPath}">${t[helpText]}</a></div>
</div>
</div>
<form data-state="form" data-check="${check}" data-action="${action}" data-next="${v.returnTo}" data-login="${v.root}${v.loginUrl}" hidden>
<p role="alert" class="alert error" id="alert"></p>
${content}</form>
<div role="status">
<div data-state="done" hidden>
<p class="status" tabindex="-1">${t[done]}</p>
<div class="actions"><a class="button" href="${v.root}${v.loginUrl}">${t.logIn}</a></div>
</div>
</div>
`
