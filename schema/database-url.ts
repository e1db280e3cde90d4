import postgres from 'postgres'

/**
 * Returns whether a text is the URL of a database. postgres.js parses it, so that URLs with several hosts or with options
 * are recognised. It does not connect.
 */
export function isDatabaseUrl (text: string): boolean {
  try {
    postgres(text)
    return /^postgres(ql)?:\/\//.test(text)
  } catch {
    return false
  }
}
