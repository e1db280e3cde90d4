import type { GraphQLError, GraphQLFormattedError } from 'graphql'
import type { WebSocket } from 'ws'
import { MembershipEnded } from '../../../../schema/sign-in/login.ts'
import { DatabaseUnavailable } from '../../../../schema/http/errors.ts'
import { limitExceeded } from '../../../../schema/graphql/limits.ts'
import type { Actor } from '../../../../schema/options/policy.ts'
import { executeOperation } from '../../execution/execute-operation.ts'
import { formatErrors } from '../../execution/format.ts'
import { checkSubscription, isObject, readOperation, typeOf, type Operation } from '../../execution/operation.ts'
import { isTemporary } from '../subscription.ts'
import { BoundedSocket } from './bounded-socket.ts'
import { CloseCode } from './close-codes.ts'
import { authorizationOf, completeOf, headOf, parseMessage, type Message, type Protocol } from './protocols.ts'
import { RunningOperations } from './running-operations.ts'
import type { SocketContext } from './socket-context.ts'
import { createSocketSink } from './socket-sink.ts'

const MAX_OPERATIONS_PER_SOCKET = 10
// While more messages wait for those before them, the socket is not read.
const MESSAGES_WAITING = 10

/**
 * A WebSocket that runs GraphQL operations. `app.graphql` executes queries and mutations, and `subscriptions.ts` runs
 * subscriptions. docs/decisions/graphql.md explains why neither the socket of mercurius nor the server of graphql-ws is
 * used.
 */
export class GraphqlSocket {
  readonly #protocol: Protocol
  readonly #context: SocketContext
  readonly #socket: BoundedSocket
  readonly #deadline: NodeJS.Timeout
  #state: 'opened' | 'initialised' | 'acknowledged' = 'opened'
  // Returns the actor. Each operation calls it, because the session may have ended.
  #actor: () => Promise<Actor | null> = async () => null
  #unwatch = () => {}
  readonly #running = new RunningOperations()
  // Messages are handled one after the other, so that one that stops a subscription finds it.
  #handled = Promise.resolve()
  #waiting = 0

  /** Starts the time within which `connection_init` must arrive. Must be called before anything is read. */
  constructor (socket: WebSocket, protocol: Protocol, context: SocketContext) {
    const { usher } = context
    const { connections: { unread } } = usher.usherStreams
    const { live, deadlines: { socketInit } } = usher.usherOptions
    this.#protocol = protocol
    this.#context = context
    this.#socket = new BoundedSocket(socket, {
      messages: live.messages,
      unread,
      onMessage: (text) => this.#enqueue(text),
      onError: (err) => usher.log.debug({ err }, 'a socket has failed'),
    })
    this.#deadline = setTimeout(
      () => this.#close(CloseCode.InitialisationTimeout, 'Connection initialisation timeout'), socketInit
    )
    this.#socket.onceClosed(() => {
      clearTimeout(this.#deadline)
      this.#unwatch()
      this.#running.stopAll()
    })
  }

  /** Disconnects a client that has not answered the ping of the last call. Otherwise sends another one. */
  checkAlive (): void {
    this.#socket.checkAlive()
  }

  #enqueue (text: string): void {
    this.#waiting++
    if (this.#waiting > MESSAGES_WAITING) this.#socket.setBusy(true)
    this.#handled = this.#handled.then(() => this.#handle(text)).catch((err) => {
      this.#context.usher.log.error({ err }, 'a message of a socket could not be handled')
      this.#close(CloseCode.InternalServerError, 'The server failed')
    })
  }

  async #handle (text: string): Promise<void> {
    try {
      // The socket may have closed meanwhile.
      if (this.#socket.isOpen) await this.#dispatch(parseMessage(text))
    } finally {
      this.#waiting--
      if (this.#waiting === 0) this.#socket.setBusy(false)
    }
  }

  async #dispatch (message: Message): Promise<void> {
    switch (this.#protocol.intents.get(message.type)) {
      case 'initialise': return this.#initialise(message)
      case 'start': return this.#start(message)
      case 'stop': return this.#running.stop(message.id)
      case 'ping': return this.#socket.write('{"type":"pong"}')
      case 'ignore': return
      case 'terminate': return this.#close()
      default: this.#closeInvalid()
    }
  }

  #close (code?: number, reason?: string): void {
    this.#socket.close(code, reason)
  }

  #closeInvalid (reason = ''): void {
    this.#close(CloseCode.InvalidMessage, `Invalid message${reason}`)
  }

  async #initialise ({ payload }: Message): Promise<void> {
    if (this.#state !== 'opened') {
      return this.#close(CloseCode.TooManyInitialisations, 'Too many initialisation requests')
    }
    this.#state = 'initialised'
    clearTimeout(this.#deadline)
    const { usher: { usherAccess }, request } = this.#context
    const authorization = authorizationOf(payload) ?? request.headers.authorization
    try {
      if (authorization !== undefined) {
        this.#identified(authorization, await usherAccess.identify(authorization, request.socket))
      }
      this.#state = 'acknowledged'
      this.#socket.write('{"type":"connection_ack"}')
    } catch (error) {
      this.#reject(error)
    }
  }

  #identified (authorization: string, actor: Actor): void {
    // The socket may have closed meanwhile.
    if (!this.#socket.isOpen) return
    const { usher: { usherAccess } } = this.#context
    this.#actor = () => usherAccess.identify(authorization)
    const reason = actor.organization ? 'The session or the membership has ended' : 'The session has ended'
    this.#unwatch = usherAccess.watch(actor, () => this.#close(CloseCode.Forbidden, reason))
  }

  #reject (error: unknown): void {
    if (error instanceof DatabaseUnavailable) return this.#close(CloseCode.TryAgainLater, 'Try again later')
    if (this.#protocol.rejection) this.#socket.write(this.#protocol.rejection)
    this.#close(CloseCode.Forbidden, error instanceof MembershipEnded ? error.code : 'Forbidden')
  }

  async #start ({ id, payload }: Message): Promise<void> {
    if (this.#state !== 'acknowledged') return this.#close(CloseCode.Unauthorized, 'Unauthorized')
    if (typeof id !== 'string' || id === '') return this.#closeInvalid(': id is required')
    if (this.#running.has(id)) return this.#close(CloseCode.DuplicateId, 'Subscriber for this id already exists')
    if (!isObject(payload)) return this.#closeInvalid(': payload must be an object')
    try {
      const operation = readOperation(this.#context.usher.graphql.schema, payload)
      if (this.#running.size >= MAX_OPERATIONS_PER_SOCKET) {
        throw limitExceeded(`A socket may run at most ${MAX_OPERATIONS_PER_SOCKET} operations at once`)
      }
      await this.#run(id, operation)
    } catch (error) {
      // Clients give up an operation after an error, but repeat it after the socket was closed. This failure is
      // temporary.
      if (isTemporary(error as GraphQLError)) return this.#close(CloseCode.TryAgainLater, 'Try again later')
      this.#fail(id, error as GraphQLError)
    }
  }

  async #run (id: string, operation: Operation): Promise<void> {
    const { usher, request, subscriptions, connection, networks } = this.#context
    if (typeOf(usher, operation) !== 'subscription') return this.#execute(id, operation)
    const head = headOf(this.#protocol, id)
    let hasEnded = false
    const end = (send: () => void) => {
      hasEnded = true
      this.#running.stop(id)
      send()
    }
    const subscription = { ...checkSubscription(usher, request, operation), reader: await this.#actor(), request }
    const stop = await subscriptions.subscribe(subscription, createSocketSink(this.#socket, connection, {
      networks,
      send: (event) => this.#socket.write(`${head}${event}}`),
      complete: () => end(() => this.#socket.write(completeOf(id))),
      fail: (errors) => end(() => this.#sendErrors(id, errors)),
    }))
    // It may have ended, and the socket may have closed, before this continues.
    if (hasEnded || !this.#socket.isOpen) stop()
    else this.#running.add(id, stop)
  }

  #execute (id: string, operation: Operation): void {
    const finish = (send: () => void) => {
      this.#running.remove(id)
      send()
    }
    this.#running.add(id, executeOperation(this.#context.usher, this.#context.request, this.#actor, operation, {
      result: (text) => finish(() => {
        this.#socket.write(`${headOf(this.#protocol, id)}${text}}`)
        this.#socket.write(completeOf(id))
      }),
      error: (error) => finish(() => this.#fail(id, error)),
    }))
  }

  #fail (id: string, error: GraphQLError): void {
    this.#sendErrors(id, formatErrors([error], this.#context.usher.log))
  }

  // In both protocols this message also ends the operation.
  #sendErrors (id: string, errors: readonly GraphQLFormattedError[]): void {
    this.#context.usher.usherGraphql.countErrors(errors)
    this.#socket.write(JSON.stringify({ type: 'error', id, payload: errors }))
  }
}
