import { open, type FileHandle } from 'node:fs/promises'

// The search reads one line at each step until what is left fits in a block, which is a page of the disk.
const BLOCK_BYTES = 4096
const MAX_LINE_BYTES = 64
const LINE = /^([\dA-F]{40}):\d{1,15}\r?$/i
const NEW_LINE = 0x0a
// A file that is ordered by count, or not at all, is out of order at some of so many places.
const SAMPLES = 32

interface Line {
  hash: string
  /** The byte at which the next line begins. */
  end: number
}

/** The breached passwords of a file. */
export interface BreachedFile {
  /** Returns whether the file has a hash. Throws if it cannot be read, or has something else than hashes there. */
  has (hash: string): Promise<boolean>
  close (): Promise<void>
}

/**
 * Opens a file of Pwned Passwords: a line for each SHA-1 in hexadecimal digits, with a colon and a count, ordered by
 * hash. It has tens of gigabytes, so a search reads a few of its lines by their place. Throws an `Error` with a
 * sentence if that is not what the file has.
 */
export async function openBreachedFile (path: string): Promise<BreachedFile> {
  const handle = await open(path).catch((cause: NodeJS.ErrnoException) => {
    throw new Error(`the file cannot be read (${cause.code})`, { cause })
  })
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw new Error('it is not a file')
    const { size } = stats
    await requireOrder(handle, size)
    return { has: (hash) => search(handle, size, hash.toUpperCase()), close: () => handle.close() }
  } catch (error) {
    await handle.close()
    throw error
  }
}

async function requireOrder (handle: FileHandle, size: number): Promise<void> {
  let last = ''
  for (let sample = 0; sample < SAMPLES; sample++) {
    const line = await readLine(handle, size, Math.floor(size / SAMPLES * sample))
    if (!line) break
    if (line.hash < last) throw new Error('its lines are not ordered by hash')
    last = line.hash
  }
  if (last === '') throw new Error('it has no lines')
}

async function search (handle: FileHandle, size: number, hash: string): Promise<boolean> {
  // The line of the hash, if there is one, begins at or after `low` and before `high`.
  let [low, high] = [0, size]
  while (high - low > BLOCK_BYTES) {
    const middle = Math.floor((low + high) / 2)
    const line = await readLine(handle, size, middle)
    if (line?.hash === hash) return true
    if (!line || line.hash > hash) high = middle
    else low = line.end
  }
  const block = await read(handle, low, high - low + MAX_LINE_BYTES)
  for (let start = 0; start < high - low && start < block.length;) {
    const line = parse(block, start, low)
    if (line.hash >= hash) return line.hash === hash
    start = line.end - low
  }
  return false
}

// Returns the first line that begins at a place or after it, or undefined if none does.
async function readLine (handle: FileHandle, size: number, place: number): Promise<Line | undefined> {
  // A line begins at the place itself if the byte before ends another one.
  const from = Math.max(0, place - 1)
  const bytes = await read(handle, from, 2 * MAX_LINE_BYTES)
  const start = place === 0 ? 0 : bytes.indexOf(NEW_LINE) + 1
  if (place > 0 && start === 0 && from + bytes.length < size) throw notHashes()
  if (from + start >= size || (place > 0 && start === 0)) return undefined
  return parse(bytes, start, from)
}

function parse (bytes: Buffer, start: number, offset: number): Line {
  const found = bytes.indexOf(NEW_LINE, start)
  const end = found < 0 ? bytes.length : found
  const [, hash] = LINE.exec(bytes.toString('latin1', start, end)) ?? []
  if (hash === undefined) throw notHashes()
  return { hash: hash.toUpperCase(), end: offset + end + 1 }
}

const notHashes = () => new Error('it has lines that are no SHA-1 in 40 hexadecimal digits with a colon and a count')

async function read (handle: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, position)
  return buffer.subarray(0, bytesRead)
}
