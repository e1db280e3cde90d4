const PREFIX = 'USHER_'
const SHORTEST = 5
// In a long name, two letters may be wrong.
const LONG = 8

/**
 * Returns a sentence for each variable whose name is close to that of a setting that is not set, because it is probably
 * misspelled. Short names are not considered, since other programs have similar ones.
 */
export function warnOfNames (
  environment: Readonly<Record<string, string | undefined>>, settings: readonly string[]
): string[] {
  const missing = settings.filter((name) => !environment[name])
  return Object.keys(environment).filter((name) => environment[name] && !settings.includes(name)).flatMap((name) => {
    const meant = missing.find((setting) => isClose(name.toUpperCase(), setting))
    return meant === undefined ? [] : [`${name} is not a setting and has no effect: did you mean ${meant}?`]
  })
}

function isClose (name: string, setting: string): boolean {
  if (name === `${PREFIX}${setting}`) return true
  if (Math.min(name.length, setting.length) < SHORTEST) return false
  const maxDistance = setting.length < LONG ? 1 : 2
  return Math.abs(name.length - setting.length) <= maxDistance && distance(name, setting) <= maxDistance
}

// Returns how many letters must be added, removed, replaced or swapped with the next one (optimal string alignment).
function distance (one: string, other: string): number {
  const rows = Array.from({ length: one.length + 1 }, (_, row) =>
    Array.from({ length: other.length + 1 }, (_, column) => row === 0 ? column : row))
  for (let row = 1; row <= one.length; row++) {
    for (let column = 1; column <= other.length; column++) {
      const cost = one[row - 1] === other[column - 1] ? 0 : 1
      const best = Math.min(
        rows[row - 1]![column]! + 1, rows[row]![column - 1]! + 1, rows[row - 1]![column - 1]! + cost
      )
      const isSwapped =
        row > 1 && column > 1 && one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1]
      rows[row]![column] = isSwapped ? Math.min(best, rows[row - 2]![column - 2]! + 1) : best
    }
  }
  return rows[one.length]![other.length]!
}
