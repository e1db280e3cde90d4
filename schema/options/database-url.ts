/** Explains how to write a password in the URL of a database. */
export const PASSWORD_ENCODING = 'Characters such as / # ? % @ in the password must be percent-encoded (/ is %2F).'

/** How a connection is encrypted, in the words of libpq. */
export interface Tls {
  readonly mode: 'prefer' | 'require' | 'verify-ca' | 'verify-full'
  /** Paths of files in PEM format. Without `rootCertificate`, the certificates that Node.js trusts. */
  readonly rootCertificate?: string | undefined
  readonly certificate?: string | undefined
  readonly key?: string | undefined
  readonly revocations?: string | undefined
  readonly passphrase?: string | undefined
  readonly minVersion?: string | undefined
  readonly maxVersion?: string | undefined
}

/** What the URL of a database says. Undefined is what the URL does not say. */
export interface DatabaseAddress {
  /** Without brackets. Empty if the URL names none. */
  readonly hosts: readonly string[]
  /** One for each host. */
  readonly ports: readonly number[]
  readonly user: string | undefined
  readonly password: string | undefined
  readonly database: string | undefined
  /** The folder of the server's Unix socket and the port that names it. Undefined if the URL names a host. */
  readonly socket: { readonly folder: string, readonly port: number } | undefined
  /** Whether the server has to authenticate with SCRAM-SHA-256, which proves that it knows the password. */
  readonly requiresScram: boolean
  readonly tls: Tls | undefined
  /** Options of postgres.js, such as `prepare`. */
  readonly options: Readonly<Record<string, unknown>>
  /** Settings of the session that the connection begins with, such as `statement_timeout`. */
  readonly settings: Readonly<Record<string, string>>
}

const SCRAM = 'scram-sha-256'
const FORM = /^postgres(?:ql)?:\/\/(?:([^:@/?#]*)(?::([^/?#]*))?@)?([^/?#]*)(?:\/([^?#]*))?(?:\?(.*))?$/s
const DEFAULT_PORT = 5432

// Parameters of libpq that change nothing here: what Node.js cannot set, and methods that the driver never chooses.
const WITHOUT_EFFECT = [
  'client_encoding', 'keepalives_interval', 'keepalives_count', 'tcp_user_timeout', 'sslcompression', 'sslsni',
  'sslcertmode',
  'krbsrvname', 'gsslib', 'gssdelegation', 'load_balance_hosts', 'min_protocol_version', 'max_protocol_version',
]
// Those that would be ignored if they were accepted, and why.
const UNSUPPORTED: Readonly<Record<string, string>> = {
  hostaddr: 'use host instead',
  passfile: 'give the password in the URL instead',
  service: 'give host, user and database in the URL instead',
  servicefile: 'give host, user and database in the URL instead',
  requirepeer: 'use require_auth=scram-sha-256 instead, by which the server proves that it knows the password',
  sslcrldir: 'use sslcrl instead',
  sslkeylogfile: 'remove it',
  scram_client_key: 'give the password instead',
  scram_server_key: 'give the password instead',
}
const TLS_MODES: Readonly<Record<string, Tls['mode'] | undefined>> = {
  disable: undefined,
  // A connection without encryption is not tried first.
  allow: 'prefer',
  prefer: 'prefer',
  require: 'require',
  'verify-ca': 'verify-ca',
  'verify-full': 'verify-full',
}
const DRIVER_NUMBERS = [
  'max', 'idle_timeout', 'connect_timeout', 'max_lifetime', 'max_pipeline', 'backoff', 'keep_alive',
]
const DRIVER_WORDS = ['prepare', 'debug', 'fetch_types', 'publications', 'ssl', 'sslnegotiation']

/** Returns the first host of a valid URL and its port, such as `db.example.com:5432`, for people. */
export function hostOfUrl (url: string): string {
  const { hosts: [host = 'localhost'], ports: [port = DEFAULT_PORT] } = parseDatabaseUrl(url)
  return `${host}:${port}`
}

/**
 * Parses the URL of a database as libpq does, with all of its parameters. What libpq does not know is an option of
 * postgres.js or a setting of PostgreSQL, which rejects those that it does not know either. Throws a `TypeError`, whose
 * message is a sentence without secrets, for what would have no effect but should have one.
 */
export function parseDatabaseUrl (text: string): DatabaseAddress {
  const [, user, password, authority = '', path = '', query = ''] = FORM.exec(text) ?? invalid('')
  // As for libpq, a plus sign is no space.
  const given = new Map(query.split('&').filter((pair) => pair !== '').map((pair) => {
    const [name = '', ...value] = pair.split('=')
    return [decodeURIComponent(name), decodeURIComponent(value.join('='))]
  }))
  const take = (name: string): string | undefined => {
    const value = given.get(name)
    given.delete(name)
    return value
  }

  for (const name of WITHOUT_EFFECT) given.delete(name)
  for (const [name, remedy] of Object.entries(UNSUPPORTED)) {
    if (given.has(name)) invalid(`${name} is not supported: ${remedy}`)
  }
  const [oauth] = [...given.keys()].filter((name) => name.startsWith('oauth_'))
  if (oauth) invalid(`${oauth} is not supported: give a password instead`)
  if (!['disable', 'prefer', undefined].includes(take('gssencmode'))) {
    invalid('gssencmode=require is not supported: use sslmode')
  }
  if (!['false', 'off', 'no', '0', undefined].includes(take('replication'))) invalid('replication is not supported')
  // The host that accepts writes is used in any case.
  const target = take('target_session_attrs') ?? 'any'
  if (!['any', 'read-write', 'primary'].includes(target)) {
    invalid(`target_session_attrs=${target} is not supported: the server has to accept writes`)
  }

  const { hosts, ports, socket } = readHosts(authority, take('host'), take('port'))
  const auth = take('require_auth')
  const tls = readTls(take)
  const requiresScram = auth !== undefined
  if (requiresScram && auth !== SCRAM) invalid(`require_auth has to be ${SCRAM}`)
  if (requiresScram && (tls || given.has('ssl') || hosts.length > 1)) {
    invalid('require_auth is supported with one host and without TLS only')
  }

  const keepsAlive = take('keepalives') !== '0'
  const idle = take('keepalives_idle')
  const fallbackName = take('fallback_application_name')
  const database = take('dbname') ?? decodeURIComponent(path)
  return {
    hosts,
    ports,
    socket,
    requiresScram,
    // As for libpq, connections to a Unix socket are not encrypted.
    tls: socket ? undefined : tls,
    user: take('user') ?? (user ? decodeURIComponent(user) : undefined),
    password: take('password') ?? (password ? decodeURIComponent(password) : undefined),
    database: database === '' ? undefined : database,
    options: {
      ...!keepsAlive && { keep_alive: null },
      ...keepsAlive && Number(idle) > 0 && { keep_alive: Number(idle) },
      ...readOptions(take),
    },
    settings: { ...fallbackName !== undefined && { application_name: fallbackName }, ...Object.fromEntries(given) },
  }
}

/** @param problem a sentence; empty if a part that may contain a password has the wrong form */
function invalid (problem: string): never {
  throw new TypeError(problem)
}

// The options of postgres.js, in the form in which it takes them from a URL.
function readOptions (take: (name: string) => string | undefined): Record<string, unknown> {
  const options: Record<string, unknown> = {}
  for (const name of DRIVER_NUMBERS) {
    const value = take(name)
    if (value === undefined) continue
    if (!/^-?\d+$/.test(value)) invalid(`${name} has to be a number`)
    options[name] = Number(value)
  }
  for (const name of DRIVER_WORDS) {
    const value = take(name)
    if (value !== undefined) options[name] = value === 'false' || value === 'disable' ? false : value
  }
  return options
}

// A host in the parameters takes precedence, and one that begins with / is the folder of a Unix socket.
function readHosts (authority: string, host: string | undefined, port: string | undefined) {
  const places = authority.split(',').filter((place) => place !== '').map((place) => {
    const [, bracketed, name = '', number] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d*))?$/.exec(place) ?? invalid('')
    return { name: bracketed ?? decodeURIComponent(name), port: number || undefined }
  })
  const isFolder = host?.startsWith('/') && !host.includes(',/')
  const namesOf = (list: string) => isFolder ? [list] : list.split(',').filter((name) => name !== '')
  const names = host === undefined ? places.map(({ name }) => name) : namesOf(host)
  const given = port?.split(',') ?? places.map((place) => place.port)
  // As for psql, one port applies to all hosts.
  const numberOf = (index: number): number => {
    const number = Number((given.length > 1 ? given[index] : given[0]) || DEFAULT_PORT)
    return Number.isInteger(number) && number > 0 && number < 65_536 ? number : invalid('port has to be a number')
  }
  const folders = names.filter((name) => name.startsWith('/'))
  if (folders.length > 0 && names.length > 1) invalid('several hosts are supported only if none is a folder')
  const ports = names.map((_, index) => numberOf(index))
  const [folder] = folders
  if (folder !== undefined) return { hosts: [], ports: [], socket: { folder, port: ports[0]! } }
  // Without a host, the port that the URL names is that of postgres.js's default host.
  return { hosts: names, ports: names.length > 0 || given[0] === undefined ? ports : [numberOf(0)], socket: undefined }
}

function readTls (take: (name: string) => string | undefined): Tls | undefined {
  const root = take('sslrootcert')
  const isLegacy = take('requiressl') === '1'
  const binding = take('channel_binding') ?? 'prefer'
  const files = {
    certificate: take('sslcert'), key: take('sslkey'), revocations: take('sslcrl'), passphrase: take('sslpassword'),
  }
  const versions = readVersions(take)
  const given = take('sslmode')
  if (given !== undefined && !Object.hasOwn(TLS_MODES, given)) {
    invalid(`sslmode has to be one of ${Object.keys(TLS_MODES).join(', ')}`)
  }
  if (!['disable', 'prefer', 'require'].includes(binding)) {
    invalid('channel_binding has to be disable, prefer or require')
  }
  // A root certificate is not ignored, and the system's ones prove nothing without the name of the host.
  const isGiven = root !== undefined || Object.values(files).some((file) => file !== undefined)
  const mode = given === undefined ? (isGiven || isLegacy ? 'require' : undefined) : TLS_MODES[given]
  if (binding === 'require') {
    if (mode === undefined) invalid('channel_binding=require needs sslmode=require')
    // It protects from a server in between, and so does the name in the certificate. The driver supports the latter.
    const isPublic = root === undefined || root === 'system'
    return { mode: isPublic ? 'verify-full' : strictest(mode!), ...tlsFiles(root, files, versions) }
  }
  if (mode === undefined) return undefined
  if (root === 'system') return { mode: 'verify-full', ...tlsFiles(root, files, versions) }
  return { mode: root === undefined ? mode : strictest(mode), ...tlsFiles(root, files, versions) }
}

const VERSIONS = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']

function readVersions (take: (name: string) => string | undefined) {
  const [minVersion, maxVersion] = ['ssl_min_protocol_version', 'ssl_max_protocol_version'].map((name) => {
    const version = take(name)
    if (version !== undefined && !VERSIONS.includes(version)) invalid(`${name} has to be one of ${VERSIONS.join(', ')}`)
    return version
  })
  return { minVersion, maxVersion }
}

const strictest = (mode: Tls['mode']): Tls['mode'] => mode === 'verify-full' ? mode : 'verify-ca'

const tlsFiles = <Files, Versions>(root: string | undefined, files: Files, versions: Versions) =>
  ({ ...root !== 'system' && { rootCertificate: root }, ...files, ...versions })

/** Returns whether a text is the URL of a database. */
export function isDatabaseUrl (text: string): boolean {
  return explainDatabaseUrl(text) === undefined
}

/** Returns why a text is no URL of a database that can be used, without secrets, or undefined if it is one. */
export function explainDatabaseUrl (text: string): string | undefined {
  if (!/^postgres(ql)?:\/\//.test(text)) return ''
  if (hasUnencodedPassword(text)) return PASSWORD_ENCODING
  try {
    parseDatabaseUrl(text)
    return undefined
  } catch (error) {
    const { message } = error as Error
    return message && `${message}.`
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
