import type { FastifyInstance } from 'fastify'
import { settingGroups, type SettingGroup, type ShownSetting } from '../../../schema/admin/admin.ts'
import { badge, card, checkbox, emptyState, table } from '../components.ts'
import { html, type Html } from '../html.ts'
import type { Render } from './context.ts'
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
<div id="results">${present.length === 0
  ? emptyState({ title: t.noSetting })
  : present.map(([group, rows]) => card(table<ShownSetting>({
    caption: t[titles[group]],
    hidesCaption: true,
    columns: [
      { title: t.settingColumn, cell: ({ name }) => html`<code>${name}</code>`, isHeader: true, kind: 'wide' },
      {
        title: t.valueColumn,
        kind: 'wide',
        cell: ({ value }) => value === null || value === '' ? html`<span class="muted">${t.notSet}</span>` : showText(value),
      },
      { title: t.sourceColumn, cell: ({ source }) => showSource(words, source) },
    ],
    rows,
  }), { id: group, title: t[titles[group]], attributes: { class: 'card flush' } }))}</div>`,
  }
}
