import { table } from '../pages/components.ts'
import { html, type Html } from '../pages/html.ts'
import { showNumber } from './shown.ts'

const WIDTH = 600
const HEIGHT = 140
const BOTTOM = 18
const GAP = 4

/** A series of a chart: its name, its class, and a value for each day. */
export interface Series { name: string, kind: 'first' | 'second', values: readonly number[] }

/**
 * Returns a chart of bars, one for each day and series. Screen readers get its title and description; the table below
 * it has the same values.
 */
export function chart (
  { id, title, days, series }: { id: string, title: string, days: readonly string[], series: readonly Series[] }
): Html {
  const highest = Math.max(1, ...series.flatMap(({ values }) => values))
  const slot = WIDTH / days.length
  const width = (slot - GAP) / series.length
  const height = (value: number) => value === 0 ? 0 : Math.max(2, value / highest * (HEIGHT - BOTTOM - 14))
  const bars = series.flatMap(({ name, kind, values }, place) => values.map((value, index) => {
    const tall = height(value)
    const [x, y] = [index * slot + GAP / 2 + place * width, HEIGHT - BOTTOM - tall]
    return html`<rect class="bar ${kind}" x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${width.toFixed(1)}" height="${
      tall.toFixed(1)}"><title>${days[index]}: ${showNumber(value)} ${name}</title></rect>`
  }))
  const sums = series.map(({ name, values }) => `${showNumber(values.reduce((sum, value) => sum + value, 0))} ${name}`)
  return html`<figure class="chart">
<figcaption><span class="strong">${title}</span> <span class="legend">${series.map(({ name, kind }) =>
  html`<span class="key ${kind}">${name}</span>`)}</span></figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-labelledby="${id}-title ${id}-desc">
<title id="${id}-title">${title}</title>
<desc id="${id}-desc">${sums.join(' and ')} from ${days[0]} to ${days.at(-1)}, at most ${showNumber(highest)} a day.</desc>
<line class="axis" x1="0" x2="${WIDTH}" y1="${HEIGHT - BOTTOM}" y2="${HEIGHT - BOTTOM}"></line>
<text class="label" x="0" y="11">${showNumber(highest)}</text>
<text class="label" x="0" y="${HEIGHT - 4}">${days[0]}</text>
<text class="label end" x="${WIDTH}" y="${HEIGHT - 4}">${days.at(-1)}</text>
${bars}
</svg>
<details><summary>As a table</summary>${table({
    caption: title,
    hidesCaption: true,
    columns: [
      { title: 'Day (UTC)', cell: (index: number) => days[index], isHeader: true },
      ...series.map(({ name, values }) => ({
        title: name, cell: (index: number) => showNumber(values[index]!), isNumber: true,
      })),
    ],
    rows: days.map((_, index) => days.length - 1 - index),
  })}</details>
</figure>`
}
