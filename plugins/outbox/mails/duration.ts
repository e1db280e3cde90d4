const UNITS = [[86400, 'day'], [3600, 'hour'], [60, 'minute']] as const

/**
 * Returns a duration in the largest unit that needs no fraction, in a language. Seconds are rounded down to minutes, so
 * that a mail does not promise too much.
 */
export function durationOf (seconds: number, language: string): string {
  const minutes = seconds - seconds % 60
  const [size, unit] = UNITS.find(([size]) => minutes % size === 0)!
  // With the digits of codes and links.
  return new Intl.NumberFormat(`${language}-u-nu-latn`, { style: 'unit', unit, unitDisplay: 'long' })
    .format(minutes / size)
}
