import postgres from 'postgres'

/** Explains how to write a password in the URL of a database. */
export const PASSWORD_ENCODING = 'Characters such as / # ? % @ in the password must be percent-encoded (/ is %2F).'

/** What the URL of a database says, and what postgres.js does not understand by itself. */
export interface DatabaseAddress {
  /** The URL for postgres.js. */
  readonly url: string
  /** The folder of the server's Unix socket and the port that names it. Undefined if the URL names a host. */
  readonly socket: { readonly folder: string, readonly port: number } | undefined
  /** Whether the server has to authenticate with SCRAM-SHA-256, which proves that it knows the password. */
  readonly requiresScram: boolean
}

const SCRAM = 'scram-sha-256'
const FORM = /^(postgres(?:ql)?:\/\/(?:[^@/?#]*@)?)([^/?#]*)([^?#]*)\??(.*)$/s

/**
 * Parses the URL of a database. As for psql, `?host=` takes precedence over the host before the path, a host that
 * begins with / (or %2F, before the path) is the folder of a Unix socket, and `?require_auth=scram-sha-256` rejects
 * servers that authenticate in another way. Throws a `TypeError` for other values of `require_auth`, and where it
 * cannot be checked: with TLS, and with several hosts.
 */
export function parseDatabaseUrl (text: string): DatabaseAddress {
  const [, start = '', authority = '', path = '', query = ''] = FORM.exec(text) ?? []
  const parameters = new URLSearchParams(query)
  const given = parameters.get('host')
  const requiresScram = parameters.has('require_auth')
  if (given === null && !requiresScram && !/^%2f/i.test(authority)) {
    return { url: text, socket: undefined, requiresScram }
  }

  const [, named = '', number] = /^(.*?)(?::(\d+))?$/.exec(authority)!
  const host = given ?? decodeURIComponent(named)
  const ports = (given === null ? undefined : parameters.get('port')) ?? number
  const usesTls = parameters.has('ssl') || !['disable', null].includes(parameters.get('sslmode'))
  const hosts = given === null ? authority : withPorts(given, ports)
  const isSeveral = !host.startsWith('/') && hosts.includes(',')
  if (requiresScram && (parameters.get('require_auth') !== SCRAM || usesTls || isSeveral)) {
    throw new TypeError('Unsupported require_auth')
  }
  if (given !== null) for (const name of ['host', 'port']) parameters.delete(name)
  parameters.delete('require_auth')
  const rest = `${path}${parameters.size > 0 ? `?${parameters}` : ''}`
  if (host.startsWith('/')) {
    return { url: `${start}localhost${rest}`, socket: { folder: host, port: Number(ports ?? 5432) }, requiresScram }
  }
  return { url: `${start}${hosts}${rest}`, socket: undefined, requiresScram }
}

// As for psql, one port applies to all hosts.
function withPorts (hosts: string, ports?: string): string {
  const list = ports?.split(',') ?? []
  const portOf = (index: number) => list[list.length > 1 ? index : 0]
  return hosts.split(',').map((host, index) => [host, portOf(index)].filter(Boolean).join(':')).join()
}

/**
 * Returns whether a text is the URL of a database. postgres.js parses it, so that URLs with several hosts or with
 * options are recognised. It does not connect.
 */
export function isDatabaseUrl (text: string): boolean {
  if (!/^postgres(ql)?:\/\//.test(text) || hasUnencodedPassword(text)) return false
  try {
    postgres(parseDatabaseUrl(text).url)
    return true
  } catch {
    return false
  }
}
/**
 * Returns whether the URL of a database probably has a password that is not percent-encoded. A part of the password
 * would then be taken for the host or for the name of the database, both of which are shown to people.
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
