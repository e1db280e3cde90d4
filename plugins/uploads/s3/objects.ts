import { listObjects } from './lists.ts'
import { lengthOf, requireTag, tagOf } from './proofs.ts'
import { InvalidAnswer, StoreError, type StoreAnswer, type StoreRequest, type StoreRequests } from './requests.ts'
import type { SealedSpool } from './spool.ts'

/** Stores bytes as an object. Resolves when it is durable. */
export async function putObject (store: StoreRequests, key: string, body: SealedSpool): Promise<void> {
  await store.send({ operation: 'put', method: 'PUT', key, body }, async (answer) => {
    const isConfirmed = answer.status === 200 && tagOf(answer.headers) !== undefined && answer.text.trim() === ''
    if (!isConfirmed) await requireObject(store, key, body.size, answer)
  })
}

/** Copies an object of this size. `source` is its bucket and its key. Resolves when the copy is durable. */
export async function copyObject (store: StoreRequests, source: string, key: string, size: number): Promise<void> {
  const headers = { 'x-amz-copy-source': `/${source}` }
  await store.send({ operation: 'put', method: 'PUT', key, headers }, async (answer) => {
    const isConfirmed = answer.root?.name === 'CopyObjectResult' && answer.root.textOf('ETag')
    if (!isConfirmed) await requireObject(store, key, size, answer)
  })
}

/** Deletes an object. Does nothing if there is none. */
export async function deleteObject (store: StoreRequests, key: string): Promise<void> {
  try {
    await store.send({ operation: 'delete', method: 'DELETE', key }, async (answer) => {
      const isConfirmed = answer.status === 204 || !await exists(store, key)
      if (!isConfirmed) throw new InvalidAnswer(answer, 'and has not deleted the object')
    })
  } catch (error) {
    if (!isNoSuchKey(error)) throw error
  }
}

/** Returns whether an error says that there is no object with this key. */
export const isNoSuchKey = (error: unknown): boolean => error instanceof StoreError && error.code === 'NoSuchKey'

/** Returns whether there is an object. Only a document of the store says that there is none. */
export async function exists (store: StoreRequests, key: string): Promise<boolean> {
  try {
    const response = await store.open({ operation: 'get', method: 'GET', key, isRepeated: false }, requireTag)
    response.destroy()
    return true
  } catch (error) {
    if (isNoSuchKey(error)) return false
    throw error
  }
}

/** Returns the entity tag and the size of an object, or undefined if there is none. */
export async function describeObject (
  store: StoreRequests, key: string, { isRepeated }: Pick<StoreRequest, 'isRepeated'> = {}
): Promise<{ tag: string, size: number } | undefined> {
  try {
    const [tag, size] = await store.send({ operation: 'head', method: 'HEAD', key, isRepeated }, (answer) => {
      if (answer.status !== 200) throw new InvalidAnswer(answer, 'in place of 200')
      return [requireTag(answer), lengthOf(answer.headers)] as const
    })
    if (size !== undefined) return { tag, size }
    // Some gateways remove the length. The name of the object itself comes before those that begin with it.
    const { value: page } = await listObjects(store, key, { limit: 1, isRepeated }).next()
    const listed = page?.objects.find(({ name }) => name === '')
    return listed && { tag, size: listed.size }
  } catch (error) {
    // The answer to HEAD has no document that names the error.
    if (error instanceof StoreError && error.status === 404) return undefined
    throw error
  }
}

/** Returns the size of an object, or undefined if there is none. */
export const sizeOf = async (
  store: StoreRequests, key: string, options?: Pick<StoreRequest, 'isRepeated'>
): Promise<number | undefined> => (await describeObject(store, key, options))?.size

/**
 * Throws `InvalidAnswer` unless there is an object of this size. The answer to the request that should have created it
 * does not prove it.
 */
export async function requireObject (
  store: StoreRequests, key: string, size: number, answer: StoreAnswer
): Promise<void> {
  if (await sizeOf(store, key, { isRepeated: false }) === size) return
  throw new InvalidAnswer(answer, 'and has not stored the object')
}
