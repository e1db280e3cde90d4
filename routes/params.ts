import type { FastifyRequest } from 'fastify'
import { Value } from '@sinclair/typebox/value'
import { IdParams } from '../schema/http/params.ts'

type Params = Pick<FastifyRequest, 'params'>

/** Returns the id in the path of a request, as records have it. Undefined if the route has no `:id`. */
export function findId ({ params }: Params): string | undefined {
  return Value.Check(IdParams, params) ? params.id.toLowerCase() : undefined
}

/** Returns the id in the path of a request, as records have it. Throws an `Error` if the route has no `:id`. */
export function idOf (request: Params): string {
  const id = findId(request)
  if (id === undefined) throw new Error('the path of this route has no :id')
  return id
}
