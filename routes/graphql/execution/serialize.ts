import { setImmediate } from 'node:timers/promises'

// Characters that are serialized in one turn of the event loop. This takes a fraction of a millisecond.
const MAX_CHARACTERS_PER_TURN = 64 * 1024

// Large results are serialized one after the other. If they shared every turn, all of them would finish in the last
// one.
let previous: Promise<unknown> = Promise.resolve()

/**
 * Serializes a large result like `JSON.stringify`, but in many turns of the event loop. In one turn 8 MiB would take 50
 * ms, or 150 ms if they consist of line breaks. Resolves with undefined if the JSON has more than `maxBytes`.
 */
export function serializeInTurns (result: object, maxBytes: number): Promise<Buffer | undefined> {
  const serialized = previous.then(() => pieceByPiece(result, maxBytes))
  // A result that cannot be serialized must not fail the results after it.
  previous = serialized.catch(() => {})
  return serialized
}

async function pieceByPiece (result: object, maxBytes: number): Promise<Buffer | undefined> {
  const pieces: Buffer[] = []
  let bytes = 0
  for (const piece of pieceTogether(result)) {
    const encoded = Buffer.from(piece)
    bytes += encoded.length
    if (bytes > maxBytes) return undefined
    pieces.push(encoded)
    await setImmediate()
  }
  return Buffer.concat(pieces)
}

function * pieceTogether (result: object): Generator<string> {
  let piece = ''
  yield * write(result)
  yield piece

  function * write (value: unknown): Generator<string> {
    if (value === null || typeof value !== 'object') {
      piece += JSON.stringify(value)
      if (piece.length < MAX_CHARACTERS_PER_TURN) return
      yield piece
      piece = ''
    } else if (Array.isArray(value)) {
      yield * writeAll('[', ']', value.entries(), false)
    } else {
      yield * writeAll('{', '}', Object.entries(value).filter(([, member]) => member !== undefined), true)
    }
  }

  function * writeAll (
    open: string, close: string, entries: Iterable<[string | number, unknown]>, named: boolean
  ): Generator<string> {
    let separator = open
    for (const [name, member] of entries) {
      piece += named ? `${separator}${JSON.stringify(name)}:` : separator
      yield * write(member)
      separator = ','
    }
    piece += separator === open ? `${open}${close}` : close
  }
}

const serialized = new WeakMap<object, Buffer>()

/** Stores the JSON of a result for `textOf` and `payloadOf`. */
export function keepSerialized (result: object, json: Buffer): void {
  serialized.set(result, json)
}

/** Forgets the JSON of a result that has changed. */
export function forgetSerialized (result: object): void {
  serialized.delete(result)
}

/** Returns the JSON of a result as text. */
export function textOf (result: object): string {
  return serialized.get(result)?.toString() ?? JSON.stringify(result)
}

/**
 * Returns the JSON of a result as the payload of a response. A large result is returned as bytes, because encoding its
 * text again would take long. Text, such as that of an event stream, is returned unchanged.
 */
export function payloadOf (result: object | string): string | Buffer {
  return typeof result === 'string' ? result : serialized.get(result) ?? JSON.stringify(result)
}
