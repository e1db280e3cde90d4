import { getOperationAST, getVariableValues, GraphQLError, type GraphQLSchema } from 'graphql'
import { WebSocket } from 'ws'
import { readDocument } from '../../schema/graphql-limits.ts'
import { isObject, readOperation } from './operation.ts'

/** In the order of preference; the latter is the older one, of subscriptions-transport-ws. */
export const PROTOCOLS = ['graphql-transport-ws', 'graphql-ws'] as const

const INIT_MS = 3000
const SUBSCRIPTIONS_A_SOCKET = 10
const OCTETS_UNSENT = 1024 * 1024

/**
 * A socket that lets through to mercurius only what it can take: mercurius neither limits nor validates what
 * comes by a socket, takes a raw AST, and mixes up operations of one id. Closes with the codes of the
 * graphql-transport-ws protocol.
 */
export class GuardedSocket extends WebSocket {
  schema: GraphQLSchema | undefined
  readonly #running = new Set<string>()
  #initialised = false
  #acknowledged = false
  #deadline: NodeJS.Timeout | undefined

  /** Starts the time within which `connection_init` must come. */
  guard (schema: GraphQLSchema): void {
    this.schema = schema
    this.#deadline = setTimeout(() => this.close(4408, 'Connection initialisation timeout'), INIT_MS)
    this.once('close', () => clearTimeout(this.#deadline))
  }

  override emit (event: string | symbol, ...args: unknown[]): boolean {
    if (event !== 'message') return super.emit(event, ...args)
    const message = this.#admit(String(args[0]))
    return message !== undefined && super.emit('message', Buffer.from(message), false)
  }

  override send (data: string, ...rest: unknown[]): void {
    const { type, id } = headOf(data)
    if (type === 'connection_ack') this.#acknowledged = true
    if (type === 'complete' || type === 'error') this.#running.delete(id)
    // mercurius refuses a token by a message that the newer protocol does not have.
    if (type === 'connection_error' && this.protocol === 'graphql-transport-ws') return this.close(4403, 'Forbidden')
    if (this.bufferedAmount > OCTETS_UNSENT) return this.terminate()
    super.send(data, ...rest as [])
  }

  // The message as mercurius gets it, or undefined where it gets none.
  #admit (text: string): string | undefined {
    const message = parseMessage(text)
    switch (message?.type) {
      case 'connection_init':
        if (this.#initialised) return this.#refuse(4429, 'Too many initialisation requests')
        this.#initialised = true
        clearTimeout(this.#deadline)
        return JSON.stringify({ type: message.type, payload: isObject(message.payload) ? message.payload : undefined })
      case 'subscribe':
      case 'start':
        return this.#admitOperation(message)
      case 'complete':
      case 'stop':
        this.#running.delete(String(message.id))
        return JSON.stringify({ type: message.type, id: message.id })
      case 'ping':
      case 'pong':
      case 'connection_terminate':
        return JSON.stringify({ type: message.type })
      default:
        return this.#refuse(4400, 'Invalid message')
    }
  }

  #admitOperation ({ type, id, payload }: Message): string | undefined {
    if (!this.#acknowledged) return this.#refuse(4401, 'Unauthorized')
    if (typeof id !== 'string' || id === '' || id.length > 100) return this.#refuse(4400, 'Invalid message')
    if (this.#running.has(id)) return this.#refuse(4409, `Subscriber for ${id} already exists`)
    try {
      if (this.#running.size >= SUBSCRIPTIONS_A_SOCKET) throw new GraphQLError(`A socket may run ${SUBSCRIPTIONS_A_SOCKET} operations at once`)
      const operation = readOperation(payload)
      this.#check(operation)
      this.#running.add(id)
      return JSON.stringify({ type, id, payload: operation })
    } catch (error) {
      this.send(JSON.stringify({ type: 'error', id, payload: [error] }))
    }
  }

  #check ({ query, variables, operationName }: ReturnType<typeof readOperation>): void {
    const operation = getOperationAST(readDocument(this.schema!, query), operationName)
    if (!operation) throw new GraphQLError('Which operation to run must be said by operationName')
    const { errors } = getVariableValues(this.schema!, operation.variableDefinitions ?? [], variables ?? {})
    if (errors) throw errors[0]
  }

  #refuse (code: number, reason: string): undefined {
    this.close(code, reason)
  }
}

interface Message { type?: unknown, id?: unknown, payload?: unknown }

function parseMessage (text: string): Message | undefined {
  try {
    const message: unknown = JSON.parse(text)
    return isObject(message) ? message : undefined
  } catch {
    return undefined
  }
}

// What mercurius sends begins with the type and the id; the payload need not be read again.
function headOf (data: string): { type: string | undefined, id: string } {
  const [, type, id = '""'] = /^\{"type":"(\w+)"(?:,"id":("(?:[^"\\]|\\.)*"))?/.exec(data) ?? []
  return { type, id: JSON.parse(id) }
}
