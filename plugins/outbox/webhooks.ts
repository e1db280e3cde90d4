import { createHash, createHmac } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Delivery } from '../../db/outbox/deliveries.ts'
import type { Webhook } from '../../schema/options/webhooks.ts'
import type { Core } from '../core.ts'
import type { Resolve } from '../support/addresses.ts'
import { createPublicRequest } from '../support/public-request.ts'

// The body of a response has no meaning. This much is read, so that a short one ends normally.
const BODY_BYTES = 16 * 1024

/** A receiver has answered that it wants no more events (Standard Webhooks: 410 Gone). */
export class WebhookGone extends Error {}

/**
 * Returns the name that identifies a webhook in the database. The URL itself may contain a secret, so its hash stands
 * for it.
 */
export function nameOfWebhook ({ name, url }: Webhook): string {
  return `webhook ${name ?? `${url.host} ${createHash('sha256').update(url.href).digest('hex').slice(0, 16)}`}`
}

/** Returns the headers that sign a message with each key, as Standard Webhooks specifies. */
export function signatureHeaders (
  keys: readonly Buffer[], { id, timestamp, body }: { id: string, timestamp: number, body: string }
): Record<string, string> {
  const signatures =
    keys.map((key) => `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`)
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signatures.join(' ') }
}

/**
 * Returns a function that sends an event to a webhook. It rejects unless the response has a 2xx status. It neither
 * follows redirects nor connects to addresses that are not public.
 */
export function createSender (
  { database: { clock }, options: { deadlines } }: Pick<Core, 'database' | 'options'>, webhook: Webhook,
  resolve?: Resolve
): (delivery: Delivery, signal: AbortSignal) => Promise<void> {
  const { webhookConnect: connectMs, webhookBody: bodyMs } = deadlines
  const { url, keys, allowPrivateAddresses } = webhook
  const request = createPublicRequest({ allowPrivateAddresses, connectMs, dnsMs: deadlines.dns, resolve })

  return async function send ({ id, type, createdAt, data }, signal) {
    const body = JSON.stringify({ type, timestamp: createdAt, data })
    const timestamp = Math.floor(clock.now() / 1000)
    const headers = {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      'user-agent': 'Usher',
      ...signatureHeaders(keys, { id, timestamp, body }),
    }
    const response = await request(url, { method: 'POST', headers, body, signal })
    discard(response, bodyMs)
    const status = response.statusCode!
    if (status === 410) throw new WebhookGone('the receiver answered 410 Gone')
    if (status < 200 || status > 299) throw new Error(`the receiver answered ${status}`)
  }
}

function discard (response: IncomingMessage, timeoutMs: number): void {
  let bytes = 0
  const timer = setTimeout(() => response.destroy(), timeoutMs).unref()
  response.on('data', (chunk: Buffer) => { if ((bytes += chunk.length) > BODY_BYTES) response.destroy() })
  response.on('close', () => clearTimeout(timer))
  response.on('error', () => {})
}
