import { createHash } from 'node:crypto'
import { HEAD_BYTES, mediaTypeOf } from './media-type.ts'
import type { SizeLimit } from './quota.ts'

/** What is found out from the bytes of a file. */
export interface Measures {
  /** In bytes. */
  size: number
  /** In hexadecimal digits. */
  sha256: string
  mediaType: string
}

/**
 * Passes bytes on to `consume` and measures them. Throws the error of the limit beyond it, and the errors of `bytes`
 * and `consume`.
 */
export async function measure (
  bytes: AsyncIterable<Uint8Array>, { maxBytes, tooLarge }: SizeLimit,
  consume: (bytes: AsyncIterable<Uint8Array>) => Promise<void>
): Promise<Measures> {
  const hash = createHash('sha256')
  let head = Buffer.alloc(0)
  let size = 0

  async function * measured (): AsyncGenerator<Uint8Array> {
    for await (const chunk of bytes) {
      size += chunk.length
      if (size > maxBytes) throw tooLarge()
      hash.update(chunk)
      if (head.length < HEAD_BYTES) head = Buffer.concat([head, chunk.subarray(0, HEAD_BYTES - head.length)])
      yield chunk
    }
  }

  await consume(measured())
  return { size, sha256: hash.digest('hex'), mediaType: await mediaTypeOf(head, size) }
}
