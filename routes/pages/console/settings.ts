import type { FastifyInstance } from 'fastify'
import { settingGroups, type SettingGroup, type ShownSetting } from '../../../schema/admin/admin.ts'
import { badge, card, checkbox, emptyState, table } from '../components.ts'
import { html, type Html } from '../html.ts'
import type { Render } from './context.ts'
import { pills } from './layout.ts'
import { searchForm, showText } from './shown.ts'
import type { ConsoleText, Words } from './words.ts'

const titles = {
  node: 'settingsNode',
  database: 'settingsDatabase',
  pages: 'settingsPages',
  access: 'settingsAccess',
  sessions: 'settingsSessions',
  mail: 'settingsMail',
  uploads: 'settingsUploads',
  limits: 'settingsLimits',
  other: 'settingsOther',
} as const satisfies Record<SettingGroup, ConsoleText>

const sources: Readonly<Record<string, ConsoleText>> = { environment: 'sourceEnvironment', host: 'sourceHost' }

function showSource ({ t }: Words, source: string): Html {
  if (source === 'default') return html`<span class="muted">${t.sourceDefault}</span>`
  return badge(Object.hasOwn(sources, source) ? t[sources[source]!] : source, 'info')
}

// Settings end with the unit of their numbers, such as STEP_UP_SECONDS and stepUpSeconds, except for these.
const UNIT = /(seconds|bytes|kib|ms)$/i
const otherUnits: readonly (readonly [pattern: RegExp, unit: string])[] = [[/^deadlines\./, 'ms'], [/^bodyLimit$/, 'bytes']]

/** Returns a value, and what is unclear about a number that has a unit: 900 seconds are 15 minutes. */
function showValue (words: Words, { name, value }: ShownSetting): Html {
  if (value === null || value === '') return html`<span class="muted">${words.t.notSet}</span>`
  const number = Number(value)
  const unit = otherUnits.find(([pattern]) => pattern.test(name))?.[1] ?? UNIT.exec(name)?.[0].toLowerCase()
  if (unit === undefined || !Number.isFinite(number)) return showText(value)
  const raw = (symbol: string) => html` <span class="muted">(${words.number(number)} ${symbol})</span>`
  if (unit === 'seconds') return html`${words.period(number)}${number >= 60 && raw('s')}`
  if (unit === 'ms') return number < 1000 ? html`${words.milliseconds(number)}` : html`${words.period(number / 1000)}${raw('ms')}`
  const bytes = unit === 'kib' ? number * 1024 : number
  return html`${words.bytes(bytes)}${bytes >= 1024 && raw(unit === 'kib' ? 'KiB' : 'B')}`
}

/** Returns the page with what applies to the node, or with the options of the host, by what they are about. */
export const createSettings = ({ usherAdmin: admin }: FastifyInstance): Render => async (context) => {
  const { caller, query: { q = '', changed = '' }, words, words: { t } } = context
  const settings = admin.settings(caller)
  const all = settings.length === 0 ? admin.options(caller) : settings
  const asked = q.trim().toLowerCase()
  const found = all.filter(({ name, value, source }) => (changed === '' || source !== 'default') &&
    `${name} ${value ?? ''}`.toLowerCase().includes(asked))
  const present = settingGroups.map((group) =>
    [group, found.filter((setting) => (setting.group ?? 'other') === group)] as const).filter(([, rows]) => rows.length > 0)
  return {
    section: 'settings',
    title: t.navSettings,
    content: html`<p class="lead">${settings.length === 0 ? t.optionsText : t.settingsText}</p>
${searchForm(context, '/settings', {
  label: t.navSettings,
  search: { label: t.searchSettings, value: q, placeholder: t.searchPart },
  isFiltered: changed !== '',
  filters: checkbox(t.onlyChanged, { name: 'changed', value: 'yes', checked: changed !== '', autocomplete: 'off' }),
})}
<div id="results">${present.length > 1 && pills(t.navSettings, present.map(([group]) =>
  ({ href: `#${group}`, text: t[titles[group]], isCurrent: false })))}${present.length === 0
  ? emptyState({ title: t.noSetting })
  : present.map(([group, rows]) => card(table<ShownSetting>({
    caption: t[titles[group]],
    hidesCaption: true,
    columns: [
      { title: t.settingColumn, cell: ({ name }) => html`<code>${name}</code>`, isHeader: true, kind: 'wide' },
      {
        title: t.valueColumn,
        kind: 'wide',
        cell: (setting) => showValue(words, setting),
      },
      { title: t.sourceColumn, cell: ({ source }) => showSource(words, source) },
    ],
    rows,
  }), { id: group, title: t[titles[group]], attributes: { class: 'card flush' } }))}</div>`,
  }
}
