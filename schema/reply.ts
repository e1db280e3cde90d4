import { Type, type TSchema } from '@sinclair/typebox'

/** What every failure but a 400 carries (contract 1.3). */
export const ErrorReply = Type.Object({
  error: Type.String({ description: 'What went wrong, for people' }),
  code: Type.Optional(Type.String({ description: 'A stable identifier, for programs' })),
}, { title: 'Error', description: 'The request failed' })

/** What a 400 carries: all problems at once (contract 1.2). */
export const ErrorsReply = Type.Object({
  errors: Type.Array(Type.String(), { description: 'One sentence a problem, in the order of the schema' }),
}, { title: 'Errors', description: 'The input is wrong' })

/** A 204: nothing to serialize. */
export const NoContent = Type.Null({ description: 'Done; the answer is empty' })

type Failure = 400 | 401 | 403 | 404 | 405 | 406 | 408 | 409 | 412 | 413 | 415 | 416 | 422 | 429 | 500 | 503 | 507

/** The reply schemas of the statuses a route may fail with; 500 and 503 are every route's. */
export function failures<Status extends Failure> (...statuses: Status[]) {
  return Object.fromEntries([...statuses, 500, 503].map((status) => [status, status === 400 ? ErrorsReply : ErrorReply])) as
    { [S in Exclude<Status, 400> | 500 | 503]: typeof ErrorReply } & (400 extends Status ? { 400: typeof ErrorsReply } : unknown)
}

/** One answer in several media types, each with a serializer of its own (the route chooses by `reply.type()`). */
export function content<Types extends Record<string, TSchema>> (description: string, types: Types) {
  const entries = Object.entries(types).map(([type, schema]) => [type, { schema }])
  return { description, content: Object.fromEntries(entries) as { [T in keyof Types]: { schema: Types[T] } } }
}
