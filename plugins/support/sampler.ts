const WINDOW_MS = 60_000
const MAX_KEYS_PER_WINDOW = 100

/**
 * Creates a function that returns true for the first of equal keys in a minute, and for at most 100 different keys.
 * What is recorded only if it returns true stays bounded in a flood, however many sources the flood has.
 */
export function createSampler ({ windowMs = WINDOW_MS, keys = MAX_KEYS_PER_WINDOW } = {}): (key: string) => boolean {
  const seen = new Set<string>()
  let ends = 0
  return (key) => {
    if (performance.now() >= ends) {
      seen.clear()
      ends = performance.now() + windowMs
    }
    if (seen.has(key) || seen.size >= keys) return false
    seen.add(key)
    return true
  }
}
