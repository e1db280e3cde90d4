// Character codes.
const [ZERO, SPACE, PLUS, MINUS, COLON] = [48, 32, 43, 45, 58]
// `2026-11-20 22:41:54+00` and `2026-11-20 22:41:54.771123+00`.
const [SHORTEST, LONGEST] = [22, 29]

/**
 * Returns the time of a `timestamptz`, `timestamp` or `date` as PostgreSQL writes it, in milliseconds: further digits
 * are cut off. `new Date` takes three times as long for the usual form in UTC, and reads all others.
 */
export function parseTimestamp (text: string): Date {
  return isUsual(text) ? new Date(millisecondsOf(text)) : new Date(text)
}

// A year before 1 or after 9999, and `infinity`, are written in another form.
function isUsual (text: string): boolean {
  const { length } = text
  return length >= SHORTEST && length <= LONGEST &&
    text.charCodeAt(4) === MINUS && text.charCodeAt(10) === SPACE && text.charCodeAt(16) === COLON &&
    text.charCodeAt(length - 3) === PLUS && text.charCodeAt(length - 2) === ZERO && text.charCodeAt(length - 1) === ZERO
}

function millisecondsOf (text: string): number {
  const days = daysUntil(100 * twoDigits(text, 0) + twoDigits(text, 2), twoDigits(text, 5), twoDigits(text, 8))
  const seconds = (twoDigits(text, 11) * 60 + twoDigits(text, 14)) * 60 + twoDigits(text, 17)
  return (days * 86400 + seconds) * 1000 + thousandths(text)
}

const digit = (text: string, place: number): number => text.charCodeAt(place) - ZERO
const twoDigits = (text: string, place: number): number => 10 * digit(text, place) + digit(text, place + 1)

// PostgreSQL leaves out zeros at the end of a fraction, and a fraction that is zero.
function thousandths (text: string): number {
  const digits = text.length - SHORTEST - 1
  if (digits < 1) return 0
  return 100 * digit(text, 20) + (digits > 1 ? 10 * digit(text, 21) : 0) + (digits > 2 ? digit(text, 22) : 0)
}

// Returns the days from 1970-01-01 to a day of the proleptic Gregorian calendar. The year of this count begins in
// March, so that a leap day is its last.
function daysUntil (year: number, month: number, day: number): number {
  const [since, months] = month > 2 ? [year, month - 3] : [year - 1, month + 9]
  const leapDays = Math.floor(since / 4) - Math.floor(since / 100) + Math.floor(since / 400)
  return 365 * since + leapDays + Math.floor((153 * months + 2) / 5) + day - 719469
}
