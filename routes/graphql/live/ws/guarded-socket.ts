import type { GraphQLError, GraphQLFormattedError } from 'graphql'
import { WebSocket } from 'ws'
import { DatabaseUnavailable } from '../../../../schema/errors.ts'
import { refused } from '../../../../schema/graphql-limits.ts'
import type { Actor } from '../../../../schema/policy.ts'
import { executeOperation } from '../../execute-operation.ts'
import { formatErrors } from '../../format.ts'
import { authorizationOf, messages, parseMessage, type Message } from './messages.ts'
import { checkSubscription, readOperation, typeOf, type Operation } from '../../operation.ts'
import { PingedSocket } from './pinged-socket.ts'
import { createSocketSink } from './socket-sink.ts'
import { isPassing } from '../subscription.ts'
import type { SocketContext } from './socket-context.ts'

const INIT_MS = 3000
const OPERATIONS_A_SOCKET = 10

/**
 * A socket that speaks both protocols and closes with the codes of graphql-transport-ws. `subscriptions.ts` runs subscriptions, and
 * mercurius executes queries and mutations. The socket of mercurius is not used, because it loses the codes of errors, serializes a
 * response of any size at once, and mixes up operations with the same id.
 */
export class GuardedSocket extends PingedSocket {
  #context!: SocketContext
  #state: 'opened' | 'initialised' | 'acknowledged' = 'opened'
  #deadline: NodeJS.Timeout | undefined
  /** Returns the actor. Each operation calls it, because the session may have ended. */
  actor: () => Promise<Actor | null> = async () => null
  #unwatch = () => {}
  // Functions that stop the running operations, by the client's id.
  readonly #running = new Map<string, () => void>()
  // Messages are handled one after the other, so that one that stops a subscription finds it.
  #handled = Promise.resolve()
  #waiting = 0

  /**
   * Sets limits and listeners, and starts the time within which `connection_init` must arrive. Must be called before anything is
   * read, because an `error` event without a listener ends the process, even while the socket is closing.
   */
  guard (context: SocketContext): void {
    const { usher, subscriptions: { unread } } = this.#context = context
    this.on('error', (err) => usher.log.debug({ err }, 'a socket has failed'))
    this.setBounds({ messages: usher.usherOptions.live.messages, unread })
    this.#deadline = setTimeout(() => this.close(4408, 'Connection initialisation timeout'), INIT_MS)
    this.once('close', () => {
      clearTimeout(this.#deadline)
      this.#unwatch()
      for (const stop of this.#running.values()) stop()
    })
  }

  override emit (event: string | symbol, ...args: unknown[]): boolean {
    if (event !== 'message' && event !== 'ping' && event !== 'pong') return super.emit(event, ...args)
    // Messages after one that has closed the socket are ignored.
    if (this.readyState !== WebSocket.OPEN) return false
    this.count()
    if (event === 'pong') return super.emit(event, ...args)
    if (event === 'ping') this.answerPing(args[0] as Buffer)
    else this.#enqueue(String(args[0]))
    return true
  }

  #enqueue (text: string): void {
    this.#waiting++
    if (this.#waiting > OPERATIONS_A_SOCKET) this.setBusy(true)
    this.#handled = this.#handled.then(() => this.#handle(text)).catch((err) => {
      this.#context.usher.log.error({ err }, 'a message of a socket could not be handled')
      this.close(4500, 'The server failed')
    })
  }

  async #handle (text: string): Promise<void> {
    try {
      // The socket may have closed meanwhile.
      if (this.readyState === WebSocket.OPEN) await this.#dispatch(parseMessage(text))
    } finally {
      this.#waiting--
      if (this.#waiting === 0) this.setBusy(false)
    }
  }

  async #dispatch (message: Message): Promise<void> {
    const { start, stop } = this.#words
    switch (message.type) {
      case 'connection_init': return this.#initialise(message)
      case start: return this.#start(message)
      case stop: return this.#running.get(message.id as string)?.()
    }
    if (this.protocol === 'graphql-ws') return message.type === 'connection_terminate' ? this.close() : this.#closeInvalid()
    if (message.type === 'ping') this.write('{"type":"pong"}')
    else if (message.type !== 'pong') this.#closeInvalid()
  }

  get #words () {
    return messages[this.protocol as keyof typeof messages]
  }

  #closeInvalid (reason = ''): void {
    this.close(4400, `Invalid message${reason}`)
  }

  async #initialise ({ payload }: Message): Promise<void> {
    if (this.#state !== 'opened') return this.close(4429, 'Too many initialisation requests')
    this.#state = 'initialised'
    clearTimeout(this.#deadline)
    this.#deadline = undefined
    const { usher: { usherAuth }, request } = this.#context
    const authorization = authorizationOf(payload) ?? request.headers.authorization
    try {
      if (authorization !== undefined) this.#identified(authorization, await usherAuth.identify(authorization, request.socket))
      this.#state = 'acknowledged'
      this.write('{"type":"connection_ack"}')
    } catch (error) {
      this.#forbid(error)
    }
  }

  #identified (authorization: string, actor: Actor): void {
    // The socket may have closed meanwhile.
    if (this.readyState !== WebSocket.OPEN) return
    const { usher: { usherAuth } } = this.#context
    this.actor = () => usherAuth.identify(authorization)
    this.#unwatch = usherAuth.watch(authorization, actor, () => this.close(4403, 'The session has ended'))
  }

  #forbid (error: unknown): void {
    if (error instanceof DatabaseUnavailable) return this.close(1013, 'Try again later')
    if (this.protocol === 'graphql-ws') this.write('{"type":"connection_error","payload":{"message":"Forbidden"}}')
    this.close(4403, 'Forbidden')
  }

  async #start ({ id, payload }: Message): Promise<void> {
    if (this.#state !== 'acknowledged') return this.close(4401, 'Unauthorized')
    if (typeof id !== 'string' || id === '') return this.#closeInvalid(': id is required')
    if (this.#running.has(id)) return this.close(4409, 'Subscriber for this id already exists')
    let operation: Operation
    try {
      operation = readOperation(this.#context.usher.graphql.schema, payload)
    } catch (error) {
      return this.#closeInvalid(`: ${(error as Error).message}`)
    }
    try {
      if (this.#running.size >= OPERATIONS_A_SOCKET) throw refused(`A socket may run at most ${OPERATIONS_A_SOCKET} operations at once`)
      await this.#run(id, operation)
    } catch (error) {
      // Clients give up an operation after an error, but repeat it after the socket was closed. This failure is temporary.
      if (isPassing(error as GraphQLError)) return this.close(1013, 'Try again later')
      this.#fail(id, error as GraphQLError)
    }
  }

  async #run (id: string, operation: Operation): Promise<void> {
    const { usher, request, subscriptions, connection } = this.#context
    if (typeOf(usher, operation) !== 'subscription') return this.#execute(id, operation)
    const checked = checkSubscription(usher, request, operation)
    const head = `{"type":"${this.#words.data}","id":${JSON.stringify(id)},"payload":`
    const stop = await subscriptions.subscribe(checked, createSocketSink(this, connection, {
      network: this.#context.network,
      send: (event) => this.write(`${head}${event}}`),
      fail: (errors) => {
        this.#running.get(id)!()
        this.#sendErrors(id, errors)
      },
    }))
    this.#remember(id, stop)
    // The socket may have closed meanwhile.
    if (this.readyState !== WebSocket.OPEN) this.#running.get(id)!()
  }

  #remember (id: string, stop: () => void): void {
    this.#running.set(id, () => {
      this.#running.delete(id)
      stop()
    })
  }

  #execute (id: string, operation: Operation): void {
    const { usher, request } = this.#context
    const finish = (send: () => void) => {
      this.#running.delete(id)
      send()
    }
    this.#remember(id, executeOperation(usher, request, this.actor, operation, {
      result: (text) => finish(() => {
        this.write(`{"type":"${this.#words.data}","id":${JSON.stringify(id)},"payload":${text}}`)
        this.write(`{"type":"complete","id":${JSON.stringify(id)}}`)
      }),
      error: (error) => finish(() => this.#fail(id, error)),
    }))
  }

  #fail (id: string, error: GraphQLError): void {
    this.#sendErrors(id, formatErrors([error], this.#context.usher.log))
  }

  // In both protocols this message also ends the operation.
  #sendErrors (id: string, errors: readonly GraphQLFormattedError[]): void {
    this.write(JSON.stringify({ type: 'error', id, payload: errors }))
  }
}
