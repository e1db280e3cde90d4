import type { FastifyRequest } from 'fastify'
import type { Options } from '../../../schema/options/options.ts'
import { readCatalogue } from '../../../schema/translations/catalogues.ts'
import { readConsoleTexts, type ConsoleTexts } from '../../../schema/translations/console/index.ts'
import type { Texts } from '../../../schema/translations/en.ts'
import { formatText } from '../../../schema/translations/format.ts'
import { directionOf, languageTags, negotiateLanguage, type LanguageTag } from '../../../schema/translations/languages.ts'
import { exactTime, time } from '../components.ts'
import { html, type Html, type HtmlValue } from '../html.ts'

/** The name of a text: of the console, or of all pages. */
export type ConsoleText = keyof ConsoleTexts | keyof Texts

const UNITS = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB']
const PERIODS = [['day', 86_400], ['hour', 3600], ['minute', 60], ['second', 1]] as const
// What is longer ago has a date.
const LONGEST_AGO_SECONDS = 30 * 86_400

/** What a page says in the language of its reader. */
export class Words {
  readonly language: LanguageTag
  readonly direction: 'ltr' | 'rtl'
  readonly t: Texts & ConsoleTexts
  readonly #numbers: Intl.NumberFormat
  readonly #relative: Intl.RelativeTimeFormat

  constructor (language: LanguageTag, texts: Texts & ConsoleTexts) {
    this.language = language
    this.direction = directionOf(language)
    this.t = texts
    this.#numbers = new Intl.NumberFormat(language)
    this.#relative = new Intl.RelativeTimeFormat(language, { numeric: 'auto' })
  }

  /** Returns a text with values in place of its placeholders. */
  format (name: ConsoleText, values: Readonly<Record<string, string | number>>): string {
    return formatText(this.t[name], values, this.language)
  }

  /** Returns a text with HTML in place of its placeholders. */
  phrase (name: ConsoleText, values: Readonly<Record<string, HtmlValue>>): Html {
    const numbers = Object.entries(values).filter((entry): entry is [string, number] => typeof entry[1] === 'number')
    // What replaces a placeholder is not looked at again.
    const parts = formatText(this.t[name], Object.fromEntries(numbers), this.language).split(/\{(\w+)\}/)
    return html`${parts.map((part, index) => index % 2 === 0 ? part : values[part])}`
  }

  /** Returns a number with separators. */
  number (value: number): string {
    return this.#numbers.format(value)
  }

  /** Returns a change as a share, such as +12% for 0.12. */
  change (share: number): string {
    return share.toLocaleString(this.language, { style: 'percent', signDisplay: 'exceptZero', maximumFractionDigits: 0 })
  }

  /** Returns a size in a unit that people read, such as 1.4 MiB. */
  bytes (bytes: number): string {
    const exponent = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), UNITS.length)
    const value = bytes / 1024 ** exponent
    if (exponent === 0) return this.#inUnit(value, 'byte')
    const digits = { maximumFractionDigits: value < 10 ? 1 : 0 }
    return `${value.toLocaleString(this.language, digits)} ${UNITS[exponent - 1]}`
  }

  /** Returns seconds in words, such as 3 hours. */
  duration (seconds: number): string {
    if (seconds < 5400) return this.#inUnit(Math.round(seconds / 60), 'minute')
    return seconds < 129_600
      ? this.#inUnit(Math.round(seconds / 3600), 'hour')
      : this.#inUnit(Math.round(seconds / 86_400), 'day')
  }

  /** Returns a period in the largest unit of which it is a multiple, such as 15 minutes for 900 seconds. */
  period (seconds: number): string {
    const [unit, size] = PERIODS.find(([, size]) => seconds > 0 && seconds % size === 0) ?? PERIODS[3]
    return this.#inUnit(seconds / size, unit, 'long', 3)
  }

  /** Returns milliseconds in words. */
  milliseconds (value: number): string {
    return this.#inUnit(value, 'millisecond', 'short')
  }

  /** Returns an instant, or a dash. */
  time (instant: Date | null | undefined): Html {
    return instant ? time(instant, this.language) : html`<span class="muted none">–</span>`
  }

  /** Returns how long ago an instant is, such as 3 minutes ago, with the instant as its title, or a dash. */
  ago (instant: Date | null | undefined): Html {
    if (!instant) return this.time(instant)
    const seconds = Math.max(0, Math.trunc((Date.now() - instant.getTime()) / 1000))
    if (seconds > LONGEST_AGO_SECONDS) return this.date(instant)
    const [unit, size] = PERIODS.find(([, size]) => seconds >= Math.max(size, 60)) ?? PERIODS[3]
    // Seconds would be wrong by the time they are read.
    const text = this.#relative.format(unit === 'second' ? 0 : -Math.trunc(seconds / size), unit)
    return html`<time datetime="${instant.toISOString()}" title="${exactTime(instant, this.language)}" data-ago>${text}</time>`
  }

  /** Returns the time of an instant of today. */
  clock (instant: Date): Html {
    const text = new Intl.DateTimeFormat(this.language, { timeStyle: 'short', timeZone: 'UTC' }).format(instant)
    return html`<time datetime="${instant.toISOString()}" data-clock>${text} UTC</time>`
  }

  /** Returns the day of an instant, whose time a script shows as well, or a dash. */
  date (instant: Date | null | undefined): Html {
    if (!instant) return this.time(instant)
    const day = new Intl.DateTimeFormat(this.language, { dateStyle: 'medium', timeZone: 'UTC' }).format(instant)
    return html`<time datetime="${instant.toISOString()}" data-short>${day}</time>`
  }

  /** Returns texts as a list in a sentence. */
  list (items: readonly string[]): string {
    return new Intl.ListFormat(this.language, { type: 'unit', style: 'short' }).format(items)
  }

  #inUnit (value: number, unit: string, unitDisplay: 'long' | 'short' = 'long', maximumFractionDigits = 0): string {
    return value.toLocaleString(this.language, { style: 'unit', unit, unitDisplay, maximumFractionDigits })
  }
}

/** Returns a function that finds the words for a request, by the option `language` or by what its reader prefers. */
export function createWords ({ pages: { language } }: Pick<Options, 'pages'>) {
  const only = language === undefined ? undefined : negotiateLanguage(language, languageTags)
  const known = new Map<LanguageTag, Promise<Words>>()

  async function read (tag: LanguageTag): Promise<Words> {
    const [ofPages, ofConsole] = await Promise.all([readCatalogue(tag), readConsoleTexts(tag)])
    return new Words(tag, { ...ofPages, ...ofConsole })
  }

  return ({ headers }: FastifyRequest): Promise<Words> => {
    const tag = only ?? negotiateLanguage(headers['accept-language'], languageTags)
    const found = known.get(tag) ?? read(tag)
    known.set(tag, found)
    return found
  }
}
