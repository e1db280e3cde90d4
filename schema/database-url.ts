import postgres from 'postgres'

/** Explains how to write a password in the URL of a database. */
export const PASSWORD_ENCODING = 'Characters such as / # ? % @ in the password must be percent-encoded (/ is %2F).'

/**
 * Returns whether a text is the URL of a database. postgres.js parses it, so that URLs with several hosts or with options
 * are recognised. It does not connect.
 */
export function isDatabaseUrl (text: string): boolean {
  if (!/^postgres(ql)?:\/\//.test(text) || hasUnencodedPassword(text)) return false
  try {
    postgres(text)
    return true
  } catch {
    return false
  }
}

/**
 * Returns whether the URL of a database probably has a password that is not percent-encoded. A part of the password would then be taken
 * for the host or for the name of the database, both of which are shown to people.
 */
export function hasUnencodedPassword (text: string): boolean {
  const [, authority, path, query] = /^postgres(?:ql)?:\/\/([^/?#]*)\/?([^?#]*)\??([^#]*)/.exec(text) ?? []
  if (authority === undefined) return false
  // postgres.js takes what follows the first @ for a list of hosts if it contains a comma.
  const isAmbiguous = authority.includes(',') && authority.split('@').length > 2
  return isAmbiguous || text.includes('#') || /[@/]/.test(path!) || query!.includes('@') || !isDecodable(text)
}

function isDecodable (text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
