import { table } from '../components.ts'
import { html, type Html } from '../html.ts'
import { showNumber } from './shown.ts'

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
  { id, title, days, series }: { id: string, title: string, days: readonly string[], series: readonly Series[] }
): Html {
  const highest = Math.max(1, ...series.flatMap(({ values }) => values))
  const slot = WIDTH / days.length
  const width = (slot - GAP) / series.length
  const height = (value: number) => value === 0 ? 0 : Math.max(2, value / highest * HEIGHT)
  const bars = series.flatMap(({ name, kind, values }, place) => values.map((value, index) => {
    const tall = height(value)
    const [x, y] = [index * slot + GAP / 2 + place * width, HEIGHT - tall]
    return html`<rect class="bar ${kind}" x="${x.toFixed(1)}" y="${y.toFixed(1)}" width="${width.toFixed(1)}" height="${
      tall.toFixed(1)}"><title>${days[index]}: ${showNumber(value)} ${name}</title></rect>`
  }))
  const sums = series.map(({ name, values }) => `${showNumber(values.reduce((sum, value) => sum + value, 0))} ${name}`)
  return html`<figure class="chart">
<figcaption><span class="strong">${title}</span> <span class="legend">${series.map(({ name, kind }) =>
  html`<span class="key ${kind}">${name}</span>`)}</span></figcaption>
<div class="scale" aria-hidden="true">${showNumber(highest)}</div>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-labelledby="${id}-title ${id}-desc">
<title id="${id}-title">${title}</title>
<desc id="${id}-desc">${sums.join(' and ')} from ${days[0]} to ${days.at(-1)}, at most ${showNumber(highest)} a day.</desc>
${bars}
</svg>
<div class="scale" aria-hidden="true"><span>${days[0]}</span><span>${days.at(-1)}</span></div>
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
