import { InvalidInput } from '../../../schema/http/errors.ts'
import { button, buttonLink, card, checkbox, field, type Column } from '../components.ts'
import { attributes, html, Html, type HtmlValue } from '../html.ts'
import type { Context, Form, Outcome, View } from './context.ts'
import { icon } from './icons.ts'
import { hiddenFields } from './shown.ts'

/** What is asked before something is done that destroys or ends something. */
export interface Question {
  /** What is asked, with the name of what it is about. */
  title: string
  /** What happens then. */
  text?: HtmlValue
  button: string
  isDanger?: boolean
  fields?: Readonly<Record<string, string>>
  /** What else there is to choose. */
  choice?: Html
  /** What has to be typed before: the address of a user, or the short name of an organisation. */
  typed?: string
  /** What may be done as well, if its box is checked. */
  option?: { name: string, text: string } | undefined
}

/** The name of the field in which something is typed to confirm it. */
const TYPED = 'confirmation'

/**
 * Returns the page that asks a question. Where it was asked for by a link with `data-asks`, a script shows it as a
 * dialog (console.js).
 * @param action the address to which its form is sent
 */
export function ask (
  { words, words: { t } }: Context, { typed: given = {} }: Outcome, question: Question,
  { action, section, crumbs }: { action: string } & Pick<View, 'section'> & Required<Pick<View, 'crumbs'>>
): View {
  const { title, text, button: label, isDanger = false, fields = {}, choice, typed, option } = question
  return {
    section,
    crumbs,
    title,
    content: card(html`${text && html`<p>${text}</p>`}
<form method="post" action="${action}">${hiddenFields({ confirmed: 'yes', ...fields })}${choice}${typed !== undefined && field({
  name: TYPED,
  label: words.format('typeToConfirm', { text: typed }),
  value: given[TYPED],
  required: true,
  attributes: { 'data-expects': typed, autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false' },
})}${option && checkbox(option.text, { name: option.name, value: 'yes' })}
<div class="actions end">${buttonLink(crumbs.at(-1)!.href, t.cancelButton, { attributes: { class: 'button plain cancel' } })}${
  button(label, { kind: isDanger ? 'danger' : 'primary' })}</div></form>`, { id: 'question' }),
  }
}

/** Throws `InvalidInput` unless a form comes from the page that asks, and has what must be typed there. */
export function requireConfirmed ({ words: { t } }: Context, typed: Form, expected?: string): void {
  if (typed['confirmed'] !== 'yes') throw new InvalidInput(t.checkFirst)
  if (expected === undefined) return
  const given = typed[TYPED]?.trim().toLowerCase()
  if (given !== expected.toLowerCase()) throw new InvalidInput(t.typedOther)
}

/** Returns a link to a question, as a button. */
export const askButton = (
  href: string, text: string, { isDanger = false, label }: { isDanger?: boolean, label?: string } = {}
): Html => buttonLink(href, text, {
  attributes: {
    class: isDanger ? 'button plain danger small' : 'button plain small', 'data-asks': true, 'aria-label': label,
  },
})

/** Returns attributes of a button whose form is answered by a question. */
export const asks = { 'data-asks': true } as const

/** Returns a link of a menu. */
export const menuLink = (
  href: string, text: string,
  { isDanger = false, isQuestion = isDanger }: { isDanger?: boolean, isQuestion?: boolean } = {}
): Html => html`<a${attributes({ href, class: isDanger && 'danger', 'data-asks': isQuestion })}>${text}</a>`

/** Returns a button of a menu, which sends a form to an address. */
export const menuButton = (action: string, text: string, fields: Readonly<Record<string, string>> = {}): Html =>
  html`<form method="post" action="${action}">${hiddenFields(fields)}${button(text, { kind: 'plain' })}</form>`

/**
 * Returns the menu of a row with what can be done, behind a button. It needs no script: the browser opens it.
 * @param name what the row is about
 */
export function rowMenu (
  { words: { t } }: Context, { id, name }: { id: string, name: string }, items: readonly (Html | false | undefined)[]
): Html | false {
  const shown = items.filter((item) => item instanceof Html)
  return shown.length > 0 && html`<button${attributes({
    type: 'button', class: 'plain small dots', popovertarget: `menu-${id}`, 'aria-label': `${t.actionsColumn}: ${name}`,
  })}>${icon('more')}</button><div class="dots-menu" id="menu-${id}" popover><ul>${shown.map((item) => html`<li>${item}</li>`)}</ul></div>`
}

/** Returns the last column of a list, with the menu of each row. */
export const menuColumn = <Row> ({ words: { t } }: Context, menu: (row: Row) => HtmlValue): Column<Row> =>
  ({ title: t.actionsColumn, hidesTitle: true, kind: 'do', cell: menu })
