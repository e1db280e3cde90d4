const MASK = '********'
const SECRET = /(^|_)(SECRET|PASSWORD|TOKEN|KEY|KEY_ID)$/

/** Returns the value of a setting as it may be shown: without secrets, and without the passwords in URLs. */
export function maskSetting (name: string, value: unknown): unknown {
  if (value === undefined || value === null) return value
  if (SECRET.test(name)) return MASK
  if (Array.isArray(value)) return value.map((item) => maskSetting(name, item))
  return typeof value === 'string' ? maskUrl(value) : value
}

// A list of hosts is no valid URL for Node, so the text is not parsed. Also invalid values are masked, which may be other forms of a URL.
function maskUrl (text: string): string {
  return text
    .replace(/^([a-z][\w+.-]*:\/\/[^@:]*):.*@/i, `$1:${MASK}@`)
    .replaceAll(/([?&;][^=&;]*(?:password|passphrase|pass|secret|token|key)[^=&;]*=)[^&;]*/gi, `$1${MASK}`)
}
