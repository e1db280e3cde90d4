import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Client } from '../../db/join.ts'
import { AnswerTooLarge } from '../../schema/errors.ts'
import type { Actor } from '../../schema/policy.ts'

const ROWS_AN_OPERATION = 10_000

/** What every resolver gets, besides what mercurius adds. */
export interface GraphQLContext {
  readonly usher: FastifyInstance
  /** The request that it came by; none for an event that subscribers share. */
  readonly request?: FastifyRequest
  /** For whom it is: what is asked for is not read any more once the connection is gone. */
  readonly client: Client
  /** Who is asking; null without a token. Over a socket it is asked anew, since the session may have ended. */
  readonly actor: () => Promise<Actor | null>
  /** Rows of lists so far in this operation. */
  rows: number
  /** Where a subscription goes on, if its transport says so. */
  readonly lastEventId?: string | undefined
}

/** That of an operation by HTTP. */
export function createContext (usher: FastifyInstance, request: FastifyRequest): GraphQLContext {
  return { usher, request, client: request.socket, actor: async () => request.actor, rows: 0 }
}

/** Counts the rows of a list against the bound of an operation. Throws `AnswerTooLarge`. */
export function count<List extends { rows: readonly unknown[] }> (context: GraphQLContext, list: List): List {
  context.rows += list.rows.length
  if (context.rows > ROWS_AN_OPERATION) throw new AnswerTooLarge()
  return list
}
