// What must not be in the log has a name that says so, whoever logs it and however deep it is: headers as a whole,
// cookies, and what authenticates.
const SECRET = /(headers|trailers|cookies?)$|^(proxy-?)?authorization$|^x-api-key$/i
// Names that are also those of other things, such as the settings of password hashes. As texts, they are secrets.
const SECRET_TEXT = /password|passwd|secret|token|credential|^(recoveryCode|challenge|apiKey|privateKey|verifier)$/i
const REDACTED = '[redacted]'

// What is a secret wherever it is, such as in the message of an error: what authenticates a request, a JWT, an API key,
// a cookie of Usher, and the parameters that links of mails, of uploads and of providers have.
const patterns: readonly [pattern: RegExp, replacement: string][] = [
  [/\b(bearer|basic|dpop)\s+[\w.~+/=-]{6,}/gi, `$1 ${REDACTED}`],
  [/\beyJ[\w-]+\.[\w-]+\.[\w-]*/g, REDACTED],
  [/\busher_[A-Za-z0-9]{30,}/g, REDACTED],
  [/\b(usher_\w+)=[^\s;,"'&]+/g, `$1=${REDACTED}`],
  [/([?&#](?:token|secret|code|state|logout_token|login_id|sign_up_id)=)[^\s&"'#]+/gi, `$1${REDACTED}`],
]

// Whether a line may have one, which few have: most are written as they are.
const SUSPICIOUS = new RegExp([
  'headers|trailers|cookie|authorization|x-api-key|passw|secret|token|credential|recoverycode|challenge|apikey|privatekey|verifier',
  'bearer|basic|dpop|eyJ|usher_|[?&#](code|state)=|(login|sign_up)_id=',
].join('|'), 'i')

/**
 * Returns a line of the log, which is JSON, without secrets. It looks at the line rather than at what was passed to the
 * logger, because that may be anything, also the bindings of a logger that was made of it and the members of an error.
 */
export function redactLine (line: string): string {
  if (!SUSPICIOUS.test(line)) return line
  try {
    return `${JSON.stringify(redact(JSON.parse(line)))}\n`
  } catch {
    // A line that is no JSON, which a logger does not write.
    return redactText(line)
  }
}

const redactText = (text: string): string =>
  patterns.reduce((rest, [pattern, replacement]) => rest.replaceAll(pattern, replacement), text)

function redact (value: unknown): unknown {
  if (typeof value === 'string') return redactText(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(redact)
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, redactMember(name, member)]))
}

function redactMember (name: string, value: unknown): unknown {
  if (value === null || value === '') return value
  if (SECRET.test(name) || (SECRET_TEXT.test(name) && (typeof value === 'string' || isBytes(value)))) return REDACTED
  return redact(value)
}

// What JSON makes of a buffer.
const isBytes = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && 'type' in value && value.type === 'Buffer'
