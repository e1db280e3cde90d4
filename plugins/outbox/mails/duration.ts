const UNITS = [[86400, 'day'], [3600, 'hour'], [60, 'minute']] as const

/**
 * Returns a duration in the largest unit that needs no fraction. Seconds are rounded down to minutes, so that a mail
 * does not promise too much.
 */
export function durationOf (seconds: number): string {
  const minutes = seconds - seconds % 60
  const [unit, name] = UNITS.find(([unit]) => minutes % unit === 0)!
  return `${minutes / unit} ${name}${minutes === unit ? '' : 's'}`
}
