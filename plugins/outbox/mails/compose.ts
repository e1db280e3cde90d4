import type { AdmittedWays, MailName } from '../../../schema/options/mail.ts'
import type { MailTexts } from '../../../schema/translations/mails/index.ts'
import { escapeHtml } from '../../support/template.ts'

/** The sources of the templates of a mail: see `parseTemplate`. The HTML is without the layout. */
export interface MailSources { subject: string, text: string, html: string }

/** A part of a mail, in both forms. */
type Block = Omit<MailSources, 'subject'>

/** The name of the value with the short form of a link, for its text: without scheme and token. */
export const shortNameOf = (link: string): string => `${link}Text`

/** Returns a link as people read it. */
export const shortenLink = (link: string): string => link.replace(/^https?:\/\//, '').replace(/#.*$/, '')

const BUTTON = 'display: inline-block; padding: 12px 24px; border: 1px solid {{textColor}}; border-radius: 6px; ' +
  'background: {{color}}; color: {{textColor}}; font-weight: 600; text-decoration: none'
const CODE = 'display: inline-block; margin: 0; padding: 8px 16px; border-radius: 6px; background: #eceef1; ' +
  'color: #17191d; font: 700 26px/1.5 ui-monospace, Menlo, Consolas, monospace; letter-spacing: 2px'
const SMALL = 'color: #565c66; font-size: 14px'

const anchor = (link: string) =>
  `<a class="link" href="{{${link}}}" style="color: #1f568f" dir="ltr">{{${shortNameOf(link)}}}</a>`

// The address of a page can be followed, too.
const paragraph = (text: string): Block => ({
  text: `${text}\n\n`, html: `<p>${escapeHtml(text).replaceAll('{{page}}', () => anchor('page'))}</p>\n`,
})

// The text shows the whole link: whoever reads it has nothing to press.
const linkTo = (link: string): Block => ({ text: `{{${link}}}\n\n`, html: `<p>${anchor(link)}</p>\n` })

const code: Block =
  { text: '{{code}}\n\n', html: `<p><span class="code" dir="ltr" style="${CODE}">{{code}}</span></p>\n` }

// A section of a template that appears if a value is not empty, and another that appears if it is.
function either (value: string, present: readonly Block[], absent: readonly Block[]): Block {
  const section = (form: keyof Block) => {
    const [one, other] = [present, absent].map((blocks) => blocks.map((block) => block[form]).join(''))
    return `{{#${value}}}${one}{{/${value}}}{{^${value}}}${other}{{/${value}}}`
  }
  return { text: section('text'), html: section('html') }
}

/** Returns the sources of a mail in the language of the texts: a heading, a button, and the link again as text. */
export function composeMail (name: MailName, texts: MailTexts): MailSources {
  const { subject, text } = texts[name]
  const blocks = [paragraph(text), ...restOf(name, texts)]
  const join = (form: keyof Block) => blocks.map((block) => block[form]).join('')
  const heading = `<h1 style="margin: 0 0 16px; font-size: 22px; line-height: 1.3">${escapeHtml(subject)}</h1>\n`
  return { subject, text: `${join('text')}{{productName}}\n`, html: heading + join('html') }
}

// What can log in to an account that can do more than before.
function admitted (
  { waysIntro, waysPasskeys, waysApp, waysIdentities, waysKeys, waysNone, waysForeign }: MailTexts['common']
): Block[] {
  const lines: AdmittedWays = { passkeys: waysPasskeys, app: waysApp, identities: waysIdentities, keys: waysKeys }
  return [
    paragraph(waysIntro),
    ...Object.entries(lines).map(([value, text]) => either(value, [paragraph(text)], [])),
    either('ways', [], [paragraph(waysNone)]),
    paragraph(waysForeign),
  ]
}

// Returns what follows the first paragraph.
function restOf (name: MailName, texts: MailTexts): Block[] {
  const { fallback, undoButton, undoAdded, noUndo, resetNow, linksLeadTo } = texts.common
  const page = paragraph(linksLeadTo)
  const button = (label: string, link: string): Block => ({
    text: `{{${link}}}\n\n`,
    html: `<p style="margin: 24px 0"><a href="{{${link}}}" style="${BUTTON}">${escapeHtml(label)}</a></p>\n` +
      `<p class="muted" style="${SMALL}">${escapeHtml(fallback)} ${anchor(link)}</p>\n`,
  })
  const undo = (explanation: string, after: readonly string[], otherwise: string): Block => either(
    'undoLink',
    [paragraph(explanation), button(undoButton, 'undoLink'), ...after.map(paragraph)],
    [paragraph(otherwise)]
  )
  switch (name) {
    case 'password-reset': case 'invitation': case 'organization-invitation': case 'sign-up': case 'verify-email':
      return [button(texts[name].button, 'link'), paragraph(texts[name].after)]
    case 'sign-up-taken': {
      const { button: label, forgot, after } = texts[name]
      return [button(label, 'loginLink'), paragraph(forgot), linkTo('forgotLink'), paragraph(after)]
    }
    case 'login': {
      const { button: label, codeHint, after } = texts[name]
      return [button(label, 'link'), paragraph(codeHint), code, paragraph(after)]
    }
    case 'step-up': return [code, paragraph(texts[name].after)]
    case 'password-changed': {
      const { undo: explanation, after, otherwise } = texts[name]
      return [undo(explanation, [after], otherwise), page]
    }
    case 'totp-added': return [undo(undoAdded, [texts[name].after], texts[name].otherwise), page]
    case 'email-changed': return [undo(texts[name].undo, [texts[name].after], noUndo)]
    case 'recovery-codes-created': return [undo(undoAdded, [texts[name].after], noUndo)]
    case 'passkey-added': case 'api-key-added': case 'identity-added': return [undo(undoAdded, [], noUndo)]
    case 'passkey-removed': case 'api-key-removed': case 'identity-removed': return [paragraph(resetNow), page]
    case 'totp-removed': case 'recovery-code-used': return [paragraph(texts[name].after), page]
    case 'account-promoted': case 'role-granted': case 'account-enabled': return [...admitted(texts.common), page]
    case 'ways-removed': case 'account-deleted': return [paragraph(texts[name].after)]
  }
}
