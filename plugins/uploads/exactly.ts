import { pipeline, Transform, type Readable } from 'node:stream'

/**
 * Returns a stream of the same bytes, which fails if there are not exactly as many as expected. A response with another
 * length than its `Content-Length` would otherwise be mistaken for a part of the next response on the connection.
 */
export function exactly (bytes: Readable, length: number): Readable {
  let rest = length
  const wrongSize = () => new Error('A stored file has another size than its record')
  const counted = new Transform({
    transform (chunk: Uint8Array, _, done) {
      rest -= chunk.length
      if (rest < 0) done(wrongSize())
      else done(null, chunk)
    },
    flush (done) { done(rest === 0 ? null : wrongSize()) },
  })
  // Destroying either stream destroys the other one.
  pipeline(bytes, counted, () => {})
  return counted
}
