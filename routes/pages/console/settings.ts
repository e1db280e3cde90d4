import type { FastifyInstance } from 'fastify'
import { settingGroups, type SettingGroup, type ShownSetting } from '../../../schema/admin/admin.ts'
import { badge, card, checkbox, emptyState, table } from '../components.ts'
import { html, type Html } from '../html.ts'
import type { Render } from './context.ts'
import { pills } from './layout.ts'
import { readSettingTexts, textOf } from './setting-texts.ts'
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

// Numbers that are names rather than amounts.
const NAMED = /port$/i

/** Returns a value in words: 900 seconds are 15 minutes. What the setting has is its title. */
function showValue (words: Words, { name, value }: ShownSetting): Html {
  const { t } = words
  if (value === null || value === '') return html`<span class="muted">${t.notSet}</span>`
  if (value === 'true' || value === 'false') return html`<span title="${value}">${value === 'true' ? t.yes : t.no}</span>`
  const number = Number(value)
  if (!Number.isFinite(number) || value.trim() === '' || NAMED.test(name)) return showText(value)
  return html`<span title="${value}">${inUnit(words, name, number)}</span>`
}

function inUnit (words: Words, name: string, number: number): string {
  const unit = otherUnits.find(([pattern]) => pattern.test(name))?.[1] ?? UNIT.exec(name)?.[0].toLowerCase()
  if (unit === 'seconds') return words.period(number)
  if (unit === 'ms') return number < 1000 ? words.milliseconds(number) : words.period(number / 1000)
  if (unit === 'kib') return words.bytes(number * 1024)
  return unit === 'bytes' ? words.bytes(number) : words.number(number)
}

/** Returns the page with what applies to the node, or with the options of the host, by what they are about. */
export function createSettings ({ usherAdmin: admin }: FastifyInstance): Render {
  const texts = readSettingTexts()

  // The documents are in English only.
  function showName ({ name }: ShownSetting): Html {
    const text = textOf(texts, name)
    return html`<code>${name}</code>${text !== undefined && html`<span class="muted what" lang="en" dir="ltr">${text}</span>`}`
  }

  function showRows (words: Words, group: SettingGroup, rows: readonly ShownSetting[]): Html | false {
    const { t } = words
    return rows.length > 0 && table<ShownSetting>({
      caption: t[titles[group]],
      hidesCaption: true,
      columns: [
        { title: t.settingColumn, cell: showName, isHeader: true, kind: 'wide' },
        { title: t.valueColumn, kind: 'value', cell: (setting) => showValue(words, setting) },
        { title: t.sourceColumn, kind: 'source', cell: ({ source }) => showSource(words, source) },
      ],
      rows,
    })
  }

  return async (context) => {
    const { caller, query: { q = '', changed = '' }, words, words: { t } } = context
    const settings = admin.settings(caller)
    const isHost = settings.length === 0
    const asked = q.trim().toLowerCase()
    const isFiltered = asked !== '' || changed !== ''
    const found = (isHost ? admin.options(caller) : settings).filter(({ name, value, source }) =>
      (changed === '' || source !== 'default') &&
      `${name} ${value ?? ''} ${textOf(texts, name) ?? ''}`.toLowerCase().includes(asked))
    const present = settingGroups.map((group) =>
      [group, found.filter((setting) => (setting.group ?? 'other') === group)] as const).filter(([, rows]) => rows.length > 0)
    // Nobody can change here what a host has fixed in its code.
    const showGroup = ([group, rows]: typeof present[number]): Html => {
      const isFixed = ({ source }: ShownSetting): boolean => isHost && source === 'host'
      const fixed = rows.filter(isFixed)
      return card(html`${showRows(words, group, rows.filter((setting) => !isFixed(setting)))}${fixed.length > 0 &&
        html`<details class="fixed"${isFiltered && html` open`}><summary>${
          words.format('setByHost', { count: fixed.length })}</summary>${showRows(words, group, fixed)}</details>`}`,
      { id: group, title: t[titles[group]], attributes: { class: 'card flush' } })
    }
    return {
      section: 'settings',
      title: t.navSettings,
      hint: html`<p class="muted">${isHost ? t.optionsText : t.settingsText}</p>`,
      content: html`${searchForm(context, '/settings', {
  label: t.navSettings,
  search: { label: t.searchSettings, value: q, placeholder: t.searchPart },
  isFiltered: changed !== '',
  filters: checkbox(t.onlyChanged, { name: 'changed', value: 'yes', checked: changed !== '', autocomplete: 'off' }),
})}
<div id="results">${present.length > 1 && pills(t.navSettings, present.map(([group]) =>
  ({ href: `#${group}`, text: t[titles[group]], isCurrent: false })))}${present.length === 0
  ? emptyState({ title: t.noSetting, text: t.noSettingHint })
  : present.map(showGroup)}</div>`,
    }
  }
}
