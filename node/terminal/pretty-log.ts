import { styleText } from 'node:util'
import { printable } from './print.ts'

type Style = Parameters<typeof styleText>[0]

const levels: Readonly<Record<number, [name: string, style: Style]>> = {
  10: ['TRACE', 'gray'],
  20: ['DEBUG', 'gray'],
  30: ['INFO', 'green'],
  40: ['WARN', 'yellow'],
  50: ['ERROR', 'red'],
  60: ['FATAL', ['bold', 'red']],
}

/**
 * Returns a destination for the log that writes readable lines, for terminals: the time, the level, the message, and
 * the other members of the entry. Elsewhere the log stays JSON, and this module is not loaded.
 */
export function createPrettyLog (output: NodeJS.WritableStream): { write (line: string): void } {
  const style = (name: Style, text: string) => styleText(name, text, { stream: output })
  return {
    write (line) {
      output.write(`${describe(line, style)}\n`)
    },
  }
}

function describe (line: string, style: (name: Style, text: string) => string): string {
  const { level, time, msg = '', pid, hostname, err, ...fields } = JSON.parse(line)
  const [name, color] = levels[level] ?? [String(level), 'gray' as Style]
  // The local time, which the reader of a terminal has.
  const clock = new Date(time).toTimeString().slice(0, 8)
  const members = Object.entries(fields)
    .map(([member, value]) => ` ${member}=${typeof value === 'string' ? value : JSON.stringify(value)}`).join('')
  const first =
    `${style('gray', clock)} ${style(color, name.padEnd(5))} ${printable(String(msg))}${members && style('gray', printable(members))}`
  const details = err === undefined
    ? []
    : String(err?.stack ?? JSON.stringify(err)).split('\n').map((text) => style('gray', `  ${printable(text)}`))
  return [first, ...details].join('\n')
}
