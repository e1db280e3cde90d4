import { table } from '../components.ts'
import { html, type Html } from '../html.ts'
import type { Words } from './words.ts'

const WIDTH = 600
const HEIGHT = 100
const GAP = 4

/** A series of a chart: its name, its class, and a value for each day. */
export interface Series { name: string, kind: 'first' | 'second', values: readonly number[] }

/**
 * Returns a chart of bars, one for each day and series, which is as wide as the page. Its labels are outside of the
 * image, so that they keep their size. Screen readers get its title and description; the table below it has the same
 * values.
 */
export function chart (
  words: Words,
  { id, title, days, series }: { id: string, title: string, days: readonly string[], series: readonly Series[] }
): Html {
  const { t } = words
  const format = new Intl.DateTimeFormat(words.language, { day: 'numeric', month: 'short', timeZone: 'UTC' })
  const names = days.map((day) => format.format(new Date(day)))
  const highest = Math.max(1, ...series.flatMap(({ values }) => values))
  const slot = WIDTH / days.length
  const width = (slot - GAP) / series.length
  const height = (value: number) => value === 0 ? 0 : Math.max(2, value / highest * HEIGHT)
  const sumOf = (values: readonly number[]) => words.number(values.reduce((sum, value) => sum + value, 0))
  const bars = series.flatMap(({ name, kind, values }, place) => values.map((value, index) => {
    const tall = height(value)
    const [x, y] = [index * slot + GAP / 2 + place * width, HEIGHT - tall]
    return html`<rect class="bar ${kind}" x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${width.toFixed(1)}" height="${
      tall.toFixed(1)}"><title>${names[index]}: ${words.number(value)} ${name}</title></rect>`
  }))
  const sums = series.map(({ name, values }) => words.format('chartSum', { count: sumOf(values), name }))
  return html`<figure class="chart">
<figcaption><span class="strong">${title}</span> <span class="legend">${series.map(({ name, kind, values }) =>
  html`<span class="key ${kind}">${name} <span class="strong">${sumOf(values)}</span></span>`)}</span></figcaption>
<div class="scale" aria-hidden="true">${words.number(highest)}</div>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-labelledby="${id}-title ${id}-desc">
<title id="${id}-title">${title}</title>
<desc id="${id}-desc">${words.format('chartText', {
  sums: words.list(sums), first: names[0]!, last: names.at(-1)!, highest: words.number(highest),
})}</desc>
${bars}
</svg>
<div class="scale" aria-hidden="true"><span>${names[0]}</span><span>${names.at(-1)}</span></div>
<details><summary>${t.chartTable}</summary>${table({
    caption: title,
    hidesCaption: true,
    columns: [
      { title: t.chartDay, cell: (index: number) => names[index], isHeader: true },
      ...series.map(({ name, values }) => ({
        title: name, cell: (index: number) => words.number(values[index]!), isNumber: true,
      })),
    ],
    rows: days.map((_, index) => days.length - 1 - index),
  })}</details>
</figure>`
}
