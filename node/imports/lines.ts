import { createReadStream } from 'node:fs'

/** The maximum size of a line, in bytes. The values of the host's fields need the most of it. */
export const MAX_LINE_BYTES = 4 * 1024 * 1024

const LINE_FEED = 0x0A
const CARRIAGE_RETURN = 0x0D
const BYTE_ORDER_MARK = Buffer.from([0xEF, 0xBB, 0xBF])

/** A line of a file. */
export interface Line {
  /** From 1. */
  readonly number: number
  /** The byte of the file at which the next line begins. */
  readonly end: number
  /** Without the line break. Undefined for a line that is too long, which is skipped. */
  readonly bytes: Buffer | undefined
}

/**
 * Yields the lines of a file, in constant memory. Lines may end with CRLF, and the file may begin with a byte order
 * mark.
 * @param from where to begin: at the end of which line, and its number
 */
export async function * readLines (
  path: string, from: { position: number, line: number }, maxBytes = MAX_LINE_BYTES
): AsyncGenerator<Line> {
  let { position, line: number } = from
  let chunks: Buffer[] = []
  let size = 0
  const add = (bytes: Buffer) => {
    size += bytes.length
    // What is known to be too long is not kept.
    if (size > maxBytes + 1) chunks = []
    else if (bytes.length > 0) chunks.push(bytes)
  }
  const take = (breakBytes: number): Line => {
    const first = position
    position += size + breakBytes
    let bytes = size > maxBytes + 1 ? undefined : Buffer.concat(chunks)
    if (bytes && first === 0 && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK)) bytes = bytes.subarray(3)
    if (bytes?.at(-1) === CARRIAGE_RETURN) bytes = bytes.subarray(0, -1)
    if (bytes && bytes.length > maxBytes) bytes = undefined;
    [chunks, size] = [[], 0]
    return { number: ++number, end: position, bytes }
  }
  for await (const chunk of createReadStream(path, { start: position, highWaterMark: 256 * 1024 })) {
    const read = chunk as Buffer
    let start = 0
    for (let at = read.indexOf(LINE_FEED); at >= 0; at = read.indexOf(LINE_FEED, start)) {
      add(read.subarray(start, at))
      yield take(1)
      start = at + 1
    }
    // A copy, because a part would keep all of the chunk in memory.
    add(Buffer.from(read.subarray(start)))
  }
  if (size > 0) yield take(0)
}
