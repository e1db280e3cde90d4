import { isObject } from '../../operation.ts'

/** The subprotocols in order of preference. The second is the older one, of subscriptions-transport-ws. */
export const PROTOCOLS = ['graphql-transport-ws', 'graphql-ws'] as const

/** The message types of each protocol. */
export const messages = {
  'graphql-transport-ws': { start: 'subscribe', stop: 'complete', data: 'next' },
  'graphql-ws': { start: 'start', stop: 'stop', data: 'data' },
} as const

/** A message of a client, not validated. */
export interface Message { type?: unknown, id?: unknown, payload?: unknown }

/** Parses a message. Returns an object without members if the text is not a JSON object. */
export function parseMessage (text: string): Message {
  try {
    const message: unknown = JSON.parse(text)
    return isObject(message) ? message : {}
  } catch {
    return {}
  }
}

/**
 * Returns the `Authorization` of a payload of `connection_init`, or undefined if it has none. Clients send it as a parameter or
 * among headers, capitalised or in lower case.
 */
export function authorizationOf (payload: unknown): string | undefined {
  const { headers, ...parameters } = isObject(payload) ? payload : {}
  const { authorization, Authorization } = { ...isObject(headers) && headers, ...parameters }
  const value = authorization ?? Authorization
  // Other types become an invalid token. They are not converted to text, because the conversion of an object may throw.
  return value === undefined || typeof value === 'string' ? value : ''
}
