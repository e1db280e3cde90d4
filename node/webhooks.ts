import type { EventName } from '../schema/outbox/events.ts'
import { readWebhooks, type WebhookOptions } from '../schema/options/webhooks.ts'
import type { UsherConfig } from '../schema/options/config.ts'

/** The settings of the node's webhook. */
export interface WebhookSettings {
  WEBHOOK_URL?: string
  WEBHOOK_SECRET?: string[]
  WEBHOOK_EVENTS?: string[]
  WEBHOOK_ALLOW_PRIVATE?: boolean
}

/**
 * Returns the webhook of the settings as an option of the plugin. Throws an `Error` with a sentence that names the
 * wrong setting.
 */
export function webhooksOf ({
  WEBHOOK_URL: url, WEBHOOK_SECRET: secret = [], WEBHOOK_EVENTS: events, WEBHOOK_ALLOW_PRIVATE: allowPrivateAddresses,
}: WebhookSettings): WebhookOptions[] {
  if (url === undefined) return []
  // With a name of its own, the webhook loses no events when its URL changes.
  const webhooks = [{ url, secret, events: events as EventName[] | undefined, name: 'node', allowPrivateAddresses }]
  try {
    readWebhooks(webhooks)
  } catch (error) {
    const message = (error as Error).message
      .replace(/^usher: webhooks\[0\]\.(\w+)/, (_, member: string) => `WEBHOOK_${member.toUpperCase()}`)
      .replace('allowPrivateAddresses', 'WEBHOOK_ALLOW_PRIVATE')
    throw new Error(`${message}.`, { cause: error })
  }
  return webhooks
}

/**
 * Returns the webhook of the settings, and those of the configuration file, of which it replaces one with its name.
 */
export function allWebhooksOf (
  settings: WebhookSettings & { file?: { options: Pick<UsherConfig, 'webhooks'> } }
): WebhookOptions[] {
  const ofSettings = webhooksOf(settings)
  const ofFile = settings.file?.options.webhooks ?? []
  return [...ofFile.filter(({ name }) => name === undefined || name !== ofSettings[0]?.name), ...ofSettings]
}
