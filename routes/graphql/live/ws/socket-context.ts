import type { Network } from '../../../../schema/http/network.ts'
import type { Duplex } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Subscriptions } from '../subscriptions.ts'

/** What a socket needs from its surroundings. */
export interface SocketContext {
  usher: FastifyInstance
  /** The request that was upgraded. */
  request: FastifyRequest
  /** The connection under the WebSocket. */
  connection: Duplex
  /** The client's networks, see `networksOf`. */
  networks: readonly Network[]
  subscriptions: Subscriptions
}
