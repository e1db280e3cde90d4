import postgres from 'postgres'

/** Whether text is a database's URL, as the client reads it: it knows several hosts, and every option. Nothing is connected. */
export function isDatabaseUrl (text: string): boolean {
  try {
    postgres(text)
    return /^postgres(ql)?:\/\//.test(text)
  } catch {
    return false
  }
}
