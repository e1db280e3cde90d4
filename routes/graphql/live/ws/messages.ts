import { isObject } from '../../operation.ts'

/** In the order of preference; the latter is the older one, of subscriptions-transport-ws. */
export const PROTOCOLS = ['graphql-transport-ws', 'graphql-ws'] as const

/** The words of each protocol. */
export const messages = {
  'graphql-transport-ws': { start: 'subscribe', stop: 'complete', data: 'next' },
  'graphql-ws': { start: 'start', stop: 'stop', data: 'data' },
} as const

/** What a client may have sent. */
export interface Message { type?: unknown, id?: unknown, payload?: unknown }

/** A message, without members where it is none. */
export function parseMessage (text: string): Message {
  try {
    const message: unknown = JSON.parse(text)
    return isObject(message) ? message : {}
  } catch {
    return {}
  }
}

/** Where clients put a token in `connection_init`: beside their other parameters, or among headers, in either case. */
export function authorizationOf (payload: unknown): string | undefined {
  const { headers, ...parameters } = isObject(payload) ? payload : {}
  const { authorization, Authorization } = { ...isObject(headers) && headers, ...parameters }
  const given = authorization ?? Authorization
  // Not made to text: an object may refuse that, and none is a token.
  return given === undefined || typeof given === 'string' ? given : ''
}
