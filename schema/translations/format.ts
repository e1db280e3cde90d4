/**
 * Returns a text with its placeholders replaced: `{name}` by the value of that name, and
 * `{count, plural, one {# code} other {# codes}}` by the case that the plural rules of the language choose for the
 * number `count`, in which `#` is that number. A placeholder without a value stays. Pages send this function to
 * browsers as it stands, so it uses nothing from outside.
 */
export function formatText (
  text: string, values: Readonly<Record<string, string | number>>, language: string
): string {
  const plural = /\{(\w+), plural,((?:\s*\w+\s*\{[^{}]*\})+)\s*\}/g
  return text
    .replace(plural, (whole, name, cases) => {
      const count = values[name]
      if (typeof count !== 'number') return whole
      const category = new Intl.PluralRules(language).select(count)
      const found = new Map(Array.from(
        cases.matchAll(/(\w+)\s*\{([^{}]*)\}/g), (match: RegExpMatchArray) => [match[1], match[2]]
      ))
      const chosen = found.get(category) ?? found.get('other') ?? ''
      return chosen.replaceAll('#', () => new Intl.NumberFormat(language).format(count))
    })
    .replace(/\{(\w+)\}/g, (whole, name) => Object.hasOwn(values, name) ? `${values[name]}` : whole)
}

/**
 * Returns the message of an error as a sentence. Pages send this function to browsers as well.
 */
export function toSentence (message: string): string {
  const end = /[.!?…。！？؟]$/.test(message) ? '' : '.'
  return `${message.slice(0, 1).toUpperCase()}${message.slice(1)}${end}`
}
