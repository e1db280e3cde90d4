import { isDatabaseUrl } from '../../schema/options/database-url.ts'

const MASK = '********'
const INVALID = '(invalid, not shown)'
const SECRET = /(^|_)(SECRET|PASSWORD|TOKEN|KEY|KEY_ID)$/
const isUrl = (name: string) => /_URLS?$/.test(name)
const ofDatabase = ['DATABASE_URL', 'NOTIFICATIONS_URL', 'REPLICA_URLS']

/**
 * Returns the value of a setting as it may be shown: without secrets, and without the credentials in URLs. A URL that
 * cannot be parsed is not shown at all, because nobody knows which part of it is a password.
 */
export function maskSetting (name: string, value: unknown): unknown {
  if (value === undefined || value === null) return value
  if (SECRET.test(name)) return MASK
  if (Array.isArray(value)) return value.map((item) => maskSetting(name, item))
  if (typeof value !== 'string' || !isUrl(name)) return value
  if (ofDatabase.includes(name)) return isDatabaseUrl(value) ? maskParameters(maskPassword(value)) : INVALID
  // What follows the host has no such characters, unless a password has them that are not percent-encoded.
  if (!URL.canParse(value) || !/^[a-z]+:\/\/[^/?#]*([/?][^@#]*)?$/i.test(value)) return INVALID
  // Services that receive webhooks often have the credential in the path.
  if (name === 'WEBHOOK_URL') return `${new URL(value).origin}/${MASK}`
  return maskParameters(value.replace(/^([a-z]+:\/\/)[^/?#]*@/i, `$1${MASK}@`))
}

// A list of hosts is no valid URL for Node, so the text is not parsed. The name of a user of a database is no secret.
const maskPassword = (text: string): string => text.replace(/^([a-z][\w+.-]*:\/\/[^@:]*):.*@/i, `$1:${MASK}@`)

const maskParameters = (text: string): string =>
  text.replaceAll(/([?&;][^=&;]*(?:password|passphrase|pass|secret|token|key)[^=&;]*=)[^&;]*/gi, `$1${MASK}`)
