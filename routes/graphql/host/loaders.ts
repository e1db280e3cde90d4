import { InternalError } from '../../../schema/http/errors.ts'
import type { UsherLoader } from '../../../schema/graphql/host-graphql.ts'
import type { HostCall } from './context.ts'
import { readHostError } from './errors.ts'

interface Waiting { obj: unknown, params: unknown, resolve: (value: unknown) => void, reject: (error: unknown) => void }

/**
 * Returns a function that resolves a field with a loader. Objects of the same operation that are resolved at the same
 * time are passed to the loader together. The loaders of mercurius are not used, because they only work over HTTP.
 */
export function batchLoads (
  where: string, loader: UsherLoader
): (obj: unknown, params: unknown, call: HostCall) => Promise<unknown> {
  const batches = new WeakMap<HostCall, Waiting[]>()

  async function load (call: HostCall, batch: Waiting[]): Promise<void> {
    batches.delete(call)
    try {
      const values = await call.deadline.wait(
        Promise.resolve(loader(batch.map(({ obj, params }) => ({ obj, params })), call.context))
      )
      if (!Array.isArray(values) || values.length !== batch.length) {
        throw new InternalError({ cause: new Error(mismatch(where, batch.length)) })
      }
      batch.forEach(({ resolve, reject }, index) =>
        values[index] instanceof Error ? reject(readHostError(values[index])) : resolve(values[index]))
    } catch (error) {
      const failure = readHostError(error)
      for (const { reject } of batch) reject(failure)
    }
  }

  return (obj, params, call) => new Promise((resolve, reject) => {
    let batch = batches.get(call)
    if (!batch) {
      const opened: Waiting[] = batch = []
      batches.set(call, batch)
      // Rows that one statement has read are resolved one after the other in promises, so they are all there in the
      // next tick.
      void Promise.resolve().then(() => process.nextTick(load, call, opened))
    }
    batch.push({ obj, params, resolve, reject })
  })
}

const mismatch = (where: string, count: number) =>
  `usher: graphql.loaders.${where} must return an array with one value for each of the ${count} queries`
