import type { FastifyError } from 'fastify'
import type { Audit } from '../../../plugins/audit/index.ts'
import { translate } from '../../../plugins/http/errors.ts'
import { InvalidInput } from '../../../schema/http/errors.ts'
import { alert, badge, button, buttonLink, card, checkbox, table, type Column } from '../components.ts'
import type { Action } from '../../../schema/options/policy.ts'
import { attributes, html, type Html, type HtmlValue } from '../html.ts'
import { ROWS_PER_PAGE, type Context, type Done, type Form, type Section, type Submit } from './context.ts'
import { explainError } from './errors.ts'
import { asks } from './questions.ts'
import { hiddenFields } from './shown.ts'
import type { ConsoleText } from './words.ts'

const PICK = 'pick.'

/** What can be done with several rows of a list. */
export interface BulkAction {
  text: ConsoleText
  /** The question before it is done, with the number of rows. */
  ask: ConsoleText
  hint: ConsoleText
  isDanger?: boolean
  /** The action of the policy that it needs. Whether that is permitted may depend on the row. */
  needs: Action
  /** Does it with one of them, as the form of that one would. `version` is the entity tag that was shown. */
  run (context: Context, id: string, version: string): Promise<unknown>
}

export interface Bulk {
  section: Section
  /** The address of the list below the console. */
  address: string
  title: ConsoleText
  actions: Readonly<Record<string, BulkAction>>
  /** What only reads, and is a file. */
  files?: Readonly<Record<string, {
    text: ConsoleText
    needs: Action
    read (context: Context, ids: readonly string[]): Promise<{ file: string, json: unknown }>
  }>>
  /** Returns what rows are called, by their ids, as far as they are known. */
  namesOf (context: Context, ids: readonly string[]): Promise<ReadonlyMap<string, string>>
}

interface Picked { id: string, version: string }

/** Returns the column with which rows of a list are selected. */
export function pickColumn<Row> (
  { words }: Context, of: (row: Row) => Picked & { name: string }
): Column<Row> {
  return {
    title: words.t.pickColumn,
    hidesTitle: true,
    kind: 'pick',
    cell (row) {
      const { id, version, name } = of(row)
      return html`<input type="checkbox"${attributes({
        name: `${PICK}${id}`, value: version, 'aria-label': words.format('pickRow', { name }), autocomplete: 'off',
      })}>`
    },
  }
}

/** Returns a list whose rows can be selected, with what can be done with the selection. */
export function pickable (context: Context, { address, actions, files = {} }: Bulk, content: Html): Html {
  const { caller, path, request, words: { t } } = context
  const texts = Object.entries({ ...actions, ...files }).filter(([, { needs }]) => caller.allows(needs))
  if (texts.length === 0) return content
  // Where the reader comes back to, below the console.
  const back = request.method === 'GET' ? request.url.slice(request.url.indexOf('/console') + '/console'.length) : address
  return html`<form class="picks" method="post" action="${path}${address}/bulk">${hiddenFields({ back })}
${content}
<div class="bulk" role="group" aria-label="${t.pickedLabel}"><p><span>${t.pickedCount}</span> <span class="count"></span></p>
<div class="actions">${texts.map(([name, action]) => button(t[action.text], {
  kind: 'plain', small: true, attributes: { name: 'action', value: name, ...'run' in action && asks },
}))}</div></div></form>`
}

/** Returns what the form of such a list does: it asks first, then does it with each row, and says what came of each. */
export const submitBulk = (bulk: Bulk, audit: Audit): Submit => async (context, typed): Promise<Done> => {
  const { words, path } = context
  const { section, address, title, actions, files = {} } = bulk
  const picked = pickedOf(typed)
  const { action: name = '', confirmed, back: given = '' } = typed
  const back = `${path}${/^\/\w[\w/?=&.%+-]{0,1000}$/.test(given) && !/\/\/|\.\./.test(given) ? given : address}`
  if (picked.length === 0) throw new InvalidInput(words.t.pickFirst)
  if (picked.length > ROWS_PER_PAGE) throw new InvalidInput(words.format('pickedTooMany', { count: ROWS_PER_PAGE }))
  if (Object.hasOwn(files, name)) return files[name]!.read(context, picked.map(({ id }) => id))
  const action = Object.hasOwn(actions, name) ? actions[name] : undefined
  if (!action) throw new InvalidInput('action must be one of those of the list')
  const names = await bulk.namesOf(context, picked.map(({ id }) => id))
  const view = { section, crumbs: [{ href: back, text: words.t[title] }] }
  const ask = words.format(action.ask, { count: picked.length })
  return {
    view: confirmed === 'yes'
      ? { ...view, title: words.t[action.text], content: await run(context, action, audit, { picked, names, back }) }
      : { ...view, title: ask, content: confirm(context, bulk, { name, action, picked, names, back, typed }) },
  }
}

interface Asked { picked: readonly Picked[], names: ReadonlyMap<string, string>, back: string }

const nameOf = (names: ReadonlyMap<string, string>, id: string): Html => {
  const name = names.get(id)
  return name === undefined ? html`<code>${id.slice(0, 36)}</code>` : html`<bdi>${name}</bdi>`
}

function confirm (
  { path, words: { t } }: Context, { address }: Bulk,
  { name, action, picked, names, back, typed }: Asked & { name: string, action: BulkAction, typed: Form }
): Html {
  return card(html`<p>${t[action.hint]}</p>
<form method="post" action="${path}${address}/bulk">
${hiddenFields({ action: name, confirmed: 'yes', back: typed['back'] ?? '' })}
<ul class="picked">${picked.map(({ id, version }) => html`<li>${checkbox(nameOf(names, id), {
  name: `${PICK}${id}`, value: version, checked: true, autocomplete: 'off',
})}</li>`)}</ul>
<div class="actions end">${buttonLink(back, t.cancelButton, { attributes: { class: 'button plain cancel' } })}${
  button(t[action.text], { kind: action.isDanger ? 'danger' : 'primary' })}</div>
</form>`, { id: 'question' })
}

async function run (
  context: Context, action: BulkAction, audit: Audit, { picked, names, back }: Asked
): Promise<Html> {
  const { caller, words, request, words: { t } } = context
  const results: { id: string, failure?: HtmlValue }[] = []
  let isBroken = false
  // One after the other, as each of them is a transaction.
  for (const { id, version } of picked) {
    if (isBroken) {
      results.push({ id, failure: t.bulkNotTried })
      continue
    }
    try {
      await action.run(context, id, version === '' ? '""' : version)
      results.push({ id })
    } catch (thrown) {
      const error = translate(thrown as FastifyError)
      // Who has lost the session meanwhile may do nothing more.
      if (error.statusCode === 401) throw error
      if (error.statusCode === 403) audit.addRejection(caller, 403)
      if (error.statusCode! >= 500) {
        request.log.error({ err: thrown as Error }, 'A change of several rows stopped')
        isBroken = true
      }
      results.push({ id, failure: explainError(words, error) })
    }
  }
  const done = results.filter(({ failure }) => failure === undefined).length
  return html`${alert(words.format('bulkResult', { done: words.number(done), count: words.number(results.length) }),
    done === results.length ? 'success' : 'warning')}
${table({
  caption: t.resultColumn,
  hidesCaption: true,
  columns: [
    { title: t.name, cell: ({ id }) => nameOf(names, id), isHeader: true },
    {
      title: t.resultColumn,
      cell: ({ failure }) => failure === undefined
        ? badge(t.bulkDone, 'success')
        : html`${badge(t.bulkNotDone, 'error')} ${failure}`,
    },
  ],
  rows: results,
})}<p><a href="${back}">${t.bulkBack}</a></p>`
}

function pickedOf (typed: Form): Picked[] {
  return Object.entries(typed).filter(([name]) => name.startsWith(PICK))
    .map(([name, version = '']) => ({ id: name.slice(PICK.length).toLowerCase(), version }))
}
