import type { Duplex } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Subscriptions } from '../subscriptions.ts'

/** What a socket is part of. */
export interface SocketContext {
  usher: FastifyInstance
  request: FastifyRequest
  /** What it is a socket on. */
  connection: Duplex
  /** The client's network, see `networkOf`. */
  network: string
  subscriptions: Subscriptions
}
