import { defaultEventNames, eventNames, type EventName } from '../outbox/events.ts'

const WEBHOOKS = 100
const SECRETS = 10

/** A webhook: Usher sends events to its URL, signed as Standard Webhooks specifies. */
export interface WebhookOptions {
  url: string
  /**
   * A secret such as `whsec_…`, with 24 to 64 bytes in base64. Several for the time of a rotation: the receiver may
   * verify with any.
   */
  secret: string | readonly string[]
  /** The names of the events to send. By default all but those of the account log, `audit.*`. */
  events?: readonly EventName[] | undefined
  /**
   * Identifies the webhook in the database. By default that is the URL; with a name, the URL may change without losing
   * events.
   */
  name?: string | undefined
  /** Allows `http:` and addresses that are not public, such as those of an internal network. */
  allowPrivateAddresses?: boolean | undefined
}

/** A validated webhook. */
export interface Webhook {
  readonly url: URL
  readonly keys: readonly Buffer[]
  readonly events: readonly EventName[]
  readonly name: string | undefined
  readonly allowPrivateAddresses: boolean
}

const members = ['url', 'secret', 'events', 'name', 'allowPrivateAddresses'] satisfies (keyof WebhookOptions)[]

/** Returns whether a text may identify a consumer of events. */
export const isConsumerName = (name: unknown): name is string =>
  typeof name === 'string' && /^[\w.:-]{1,100}$/.test(name)

/**
 * Returns the names of events of a list, or of a single name. Throws an `Error` that begins with `what` for an unknown
 * one.
 */
export function readEventNames (what: string, given: unknown): EventName[] {
  const names: unknown[] = Array.isArray(given) ? given : [given]
  const unknown = names.find((name) => !eventNames.includes(name as EventName))
  if (unknown !== undefined) throw new Error(`${what}: there is no event ${String(unknown).slice(0, 100)}`)
  if (names.length === 0) throw new Error(`${what}: there must be at least one event`)
  return [...new Set(names as EventName[])].sort()
}

/** Returns the validated webhooks. Throws an `Error` that says what is wrong, without the URL and the secret. */
export function readWebhooks (given: unknown = []): readonly Webhook[] {
  if (!Array.isArray(given) || given.length > WEBHOOKS) {
    throw new Error(`usher: webhooks must be a list of at most ${WEBHOOKS}`)
  }
  const webhooks = given.map((webhook, index) => readWebhook(`usher: webhooks[${index}]`, webhook))
  for (const identify of [({ name }: Webhook) => name, ({ name, url }: Webhook) => name ?? url.href]) {
    const names = webhooks.map(identify).filter((name) => name !== undefined)
    if (new Set(names).size < names.length) {
      throw new Error('usher: two webhooks have the same name or URL: give each a name of its own')
    }
  }
  return webhooks
}

function readWebhook (what: string, given: unknown): Webhook {
  if (typeof given !== 'object' || given === null) throw new Error(`${what} must be an object with url and secret`)
  const { url, secret, events = defaultEventNames, name, allowPrivateAddresses = false } =
    given as Record<keyof WebhookOptions, unknown>
  const unknown = Object.keys(given).find((member) => !members.includes(member as keyof WebhookOptions))
  if (unknown !== undefined) throw new Error(`${what} has an unknown member ${unknown}`)
  if (typeof allowPrivateAddresses !== 'boolean') throw new Error(`${what}.allowPrivateAddresses must be true or false`)
  if (name !== undefined && !isConsumerName(name)) {
    throw new Error(`${what}.name must have 1 to 100 letters, digits, dots, colons, hyphens or underscores`)
  }
  return {
    url: readUrl(what, url, allowPrivateAddresses),
    keys: readSecrets(what, secret),
    events: readEventNames(`${what}.events`, events),
    name,
    allowPrivateAddresses,
  }
}

function readUrl (what: string, given: unknown, allowPrivateAddresses: boolean): URL {
  const url = typeof given === 'string' && given.length <= 2048 && URL.canParse(given) ? new URL(given) : undefined
  const isAllowed = url?.protocol === 'https:' || (allowPrivateAddresses && url?.protocol === 'http:')
  if (!url || !isAllowed) {
    throw new Error(`${what}.url must be an https: URL (http: is only possible with allowPrivateAddresses)`)
  }
  if (url.username !== '' || url.password !== '' || url.hash !== '') {
    throw new Error(`${what}.url must have neither credentials nor a fragment`)
  }
  return url
}

function readSecrets (what: string, given: unknown): Buffer[] {
  const secrets: unknown[] = Array.isArray(given) ? given : [given]
  const keys = secrets.map((secret) => {
    const [, text] = typeof secret === 'string' ? /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret) ?? [] : []
    return Buffer.from(text ?? '', 'base64')
  })
  const isValid = keys.length > 0 && keys.length <= SECRETS && keys.every(({ length }) => length >= 24 && length <= 64)
  if (!isValid) {
    throw new Error(
      `${what}.secret must be whsec_ and 24 to 64 bytes in base64, or a list of up to ${SECRETS} such secrets`
    )
  }
  return keys
}
