import type { GraphQLResolveInfo } from 'graphql'
import type { Caller } from '../../plugins/access/caller.ts'
import type { Steps } from '../../plugins/idempotency/index.ts'
import type { GraphQLContext } from './context.ts'

const REPLAYED = 'idempotency-replayed'

/**
 * Performs a mutation once for each idempotency key (contract 10.4). Each field of an operation has a result of its
 * own, which is stored together with its write. So if an operation was cut short by a crash, repeating it performs the
 * remaining fields.
 */
export async function performOnce<Result> (
  context: GraphQLContext, { fieldNodes: [field] }: Pick<GraphQLResolveInfo, 'fieldNodes'>, caller: Caller,
  steps: Steps<Result>
): Promise<Result> {
  const {
    usher: { usherIdempotency: idempotency }, operation: { query, variables, idempotencyKey: key } = {}, reply,
  } = context
  const { actor } = caller
  if (key === undefined || !actor) return steps.operate()
  const { alias, name } = field!
  const part = (alias ?? name).value
  // The response is marked only if every field is a repetition, whatever this one becomes.
  context.isNew ??= false
  const wasNew = context.isNew
  context.isNew = true
  reply?.removeHeader(REPLAYED)
  const keyed = { actorId: actor.id, key, part, operation: 'graphql', content: { query, variables } }
  const { result, isReplayed } = await idempotency.once(keyed, steps, caller)
  context.isNew = wasNew || !isReplayed
  if (!context.isNew) reply?.header(REPLAYED, 'true')
  return result
}
