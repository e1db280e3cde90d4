import type { FastifyBaseLogger } from 'fastify'
import { getOperationAST, getVariableValues, GraphQLError, type GraphQLSchema } from 'graphql'
import { WebSocket } from 'ws'
import { InternalError } from '../../schema/errors.ts'
import { readDocument, refused } from '../../schema/graphql-limits.ts'
import { formatErrors } from './format.ts'
import { isObject, readOperation, type Operation } from './operation.ts'

/** In the order of preference; the latter is the older one, of subscriptions-transport-ws. */
export const PROTOCOLS = ['graphql-transport-ws', 'graphql-ws'] as const

const INIT_MS = 3000
const OPERATIONS_A_SOCKET = 10
const OCTETS_UNSENT = 1024 * 1024

const messages = {
  'graphql-transport-ws': { start: 'subscribe', stop: 'complete', others: ['ping', 'pong'] },
  'graphql-ws': { start: 'start', stop: 'stop', others: ['connection_terminate'] },
} as const

// What mercurius sends begins with the type and the id, here always one of ours.
const HEAD = /^\{"type":"(\w+)"(?:,"id":"(\d+)")?/

/**
 * A socket that lets through to mercurius only what it can take: mercurius neither limits nor validates what
 * comes by a socket, takes a raw AST, chokes on `__proto__`, and mixes up operations of one id, also of one that
 * has just ended. So it gets ids of our own, each once. Closes with the codes of the graphql-transport-ws protocol.
 */
export class GuardedSocket extends WebSocket {
  #schema!: GraphQLSchema
  #log!: FastifyBaseLogger
  // The operations that run: our id by the client's, and the client's by ours.
  readonly #running = new Map<string, string>()
  readonly #clientIds = new Map<string, string>()
  #started = 0
  #initialised = false
  #acknowledged = false
  #deadline: NodeJS.Timeout | undefined

  /** Starts the time within which `connection_init` must come. */
  guard (schema: GraphQLSchema, log: FastifyBaseLogger): void {
    this.#schema = schema
    this.#log = log
    this.#deadline = setTimeout(() => this.close(4408, 'Connection initialisation timeout'), INIT_MS)
    this.once('close', () => clearTimeout(this.#deadline))
  }

  override emit (event: string | symbol, ...args: unknown[]): boolean {
    if (event !== 'message') return super.emit(event, ...args)
    // What follows a message that closed the socket is not heard.
    const message = this.readyState === WebSocket.OPEN && this.#admit(parse(String(args[0])))
    return message ? this.#pass(message) : false
  }

  override send (data: string, ...rest: unknown[]): void {
    const done = rest.at(-1) as (error?: Error) => void
    const [head, type, id] = HEAD.exec(data) as unknown as [string, string, string | undefined]
    const text = id === undefined ? this.#control(type, data) : this.#answer(type, id, data.slice(head.length))
    if (text === undefined) return done()
    if (this.bufferedAmount > OCTETS_UNSENT) this.terminate()
    super.send(text, done)
  }

  get #messages () {
    return messages[this.protocol as keyof typeof messages]
  }

  #pass (message: object): boolean {
    return super.emit('message', Buffer.from(JSON.stringify(message)), false)
  }

  // The message as mercurius gets it, or undefined where it gets none.
  #admit (message: Message): object | undefined {
    const { start, stop, others } = this.#messages
    switch (message.type) {
      case 'connection_init': return this.#initialise(message)
      case start: return this.#start(message)
      case stop: return this.#stop(String(message.id))
    }
    return others.some((other) => other === message.type) ? { type: message.type } : this.#refuse(4400, 'Invalid message')
  }

  #initialise ({ type, payload }: Message): object | undefined {
    if (this.#initialised) return this.#refuse(4429, 'Too many initialisation requests')
    this.#initialised = true
    clearTimeout(this.#deadline)
    return { type, payload: { authorization: authorizationOf(payload) } }
  }

  #start ({ type, id, payload }: Message): object | undefined {
    if (!this.#acknowledged) return this.#refuse(4401, 'Unauthorized')
    if (typeof id !== 'string' || id === '') return this.#refuse(4400, 'Invalid message: id is required')
    if (this.#running.has(id)) return this.#refuse(4409, 'Subscriber for this id already exists')
    let operation: Operation
    try {
      operation = readOperation(payload)
    } catch (error) {
      return this.#refuse(4400, `Invalid message: ${(error as Error).message}`)
    }
    try {
      const admitted = { type, id: String(++this.#started), payload: this.#check(operation) }
      this.#running.set(id, admitted.id)
      this.#clientIds.set(admitted.id, id)
      return admitted
    } catch (error) {
      this.#fail(id, error as GraphQLError)
    }
  }

  #check ({ query, variables = {}, operationName }: Operation): Operation {
    if (this.#running.size >= OPERATIONS_A_SOCKET) throw refused(`A socket may run ${OPERATIONS_A_SOCKET} operations at once`)
    const operation = getOperationAST(readDocument(this.#schema, query), operationName)
    if (!operation) throw new GraphQLError('operationName must name one of the operations')
    const { errors, coerced } = getVariableValues(this.#schema, operation.variableDefinitions!, variables)
    if (errors) throw errors[0]
    return { query, variables: coerced, operationName }
  }

  #stop (clientId: string): object | undefined {
    const id = this.#running.get(clientId)
    if (id === undefined) return
    this.#forget(id)
    return { type: this.#messages.stop, id }
  }

  #control (type: string, data: string): string | undefined {
    if (type === 'connection_ack') this.#acknowledged = true
    // mercurius refuses a token by a message that the newer protocol does not have.
    if (type === 'connection_error' && this.protocol === 'graphql-transport-ws') return this.#refuse(4403, 'Forbidden')
    return data
  }

  #answer (type: string, id: string, rest: string): string | undefined {
    const clientId = this.#clientIds.get(id)
    // The client has stopped it meanwhile.
    if (clientId === undefined) return
    if (type === 'complete' || type === 'error') this.#forget(id)
    if (type !== 'error') return `{"type":"${type}","id":${JSON.stringify(clientId)}${rest}`
    // What mercurius did not expect: it would send any message, and keep the operation.
    this.#pass({ type: this.#messages.stop, id })
    this.#fail(clientId, new GraphQLError('', { originalError: new InternalError({ cause: new Error(rest) }) }))
  }

  #forget (id: string): void {
    this.#running.delete(this.#clientIds.get(id)!)
    this.#clientIds.delete(id)
  }

  #fail (id: string, error: GraphQLError): void {
    super.send(JSON.stringify({ type: 'error', id, payload: formatErrors([error], this.#log) }))
  }

  #refuse (code: number, reason: string): undefined {
    this.close(code, reason)
  }
}

interface Message { type?: unknown, id?: unknown, payload?: unknown }

function parse (text: string): Message {
  try {
    const message: unknown = JSON.parse(text)
    return isObject(message) ? message : {}
  } catch {
    return {}
  }
}

// Where clients put a token: beside their other parameters, or among headers, in either case.
function authorizationOf (payload: unknown): unknown {
  const { headers, ...parameters } = isObject(payload) ? payload : {}
  const { authorization, Authorization } = { ...isObject(headers) && headers, ...parameters }
  return authorization ?? Authorization
}
