import { isObject } from '../../execution/operation.ts'

/** What a message of a client asks for. */
export type Intent = 'initialise' | 'start' | 'stop' | 'ping' | 'ignore' | 'terminate'

/** What is different between the protocols. */
export interface Protocol {
  /** What the messages of a client ask for, by their type. Messages of other types are invalid. */
  intents: ReadonlyMap<unknown, Intent>
  /** The type of the messages that carry results and events. */
  data: 'next' | 'data'
  /** The message before the socket of a client is closed that may not connect. */
  rejection?: string
}

/** The protocols by the name of their WebSocket subprotocol, in order of preference. */
export const protocols: ReadonlyMap<string, Protocol> = new Map<string, Protocol>([
  // https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md
  ['graphql-transport-ws', {
    intents: new Map<unknown, Intent>([
      ['connection_init', 'initialise'], ['subscribe', 'start'], ['complete', 'stop'], ['ping', 'ping'],
      ['pong', 'ignore'],
    ]),
    data: 'next',
  }],
  // The older one: https://github.com/apollographql/subscriptions-transport-ws/blob/master/PROTOCOL.md
  ['graphql-ws', {
    intents: new Map<unknown, Intent>([
      ['connection_init', 'initialise'], ['start', 'start'], ['stop', 'stop'], ['connection_terminate', 'terminate'],
    ]),
    data: 'data',
    rejection: '{"type":"connection_error","payload":{"message":"Forbidden"}}',
  }],
])

/** Returns the text of a message with a result or an event, before its payload, which is JSON already. */
export const headOf = ({ data }: Protocol, id: string): string =>
  `{"type":"${data}","id":${JSON.stringify(id)},"payload":`

/** Returns the message that no further results follow. */
export const completeOf = (id: string): string => `{"type":"complete","id":${JSON.stringify(id)}}`

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
 * Returns the `Authorization` of a payload of `connection_init`, or undefined if it has none. Clients send it as a
 * parameter or among headers, capitalised or in lower case.
 */
export function authorizationOf (payload: unknown): string | undefined {
  const { headers, ...parameters } = isObject(payload) ? payload : {}
  const { authorization, Authorization } = { ...isObject(headers) && headers, ...parameters }
  const value = authorization ?? Authorization
  // Other types become an invalid token. They are not converted to text, because the conversion of an object may throw.
  return value === undefined || typeof value === 'string' ? value : ''
}
