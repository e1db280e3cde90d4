import { setImmediate } from 'node:timers/promises'

// Characters that are serialized before other requests have their turn: fractions of a millisecond.
const CHARACTERS_A_TURN = 64 * 1024

/**
 * Serializes a large result like `JSON.stringify`, in many turns of the event loop: 8 MiB at once take 50 ms, or 150 ms if
 * they consist of line breaks. Returns undefined if there are more than `maxBytes`.
 */
export async function serializeInTurns (result: object, maxBytes: number): Promise<string | undefined> {
  const pieces: string[] = []
  let bytes = 0
  for (const piece of pieceTogether(result)) {
    bytes += Buffer.byteLength(piece)
    if (bytes > maxBytes) return undefined
    pieces.push(piece)
    await setImmediate()
  }
  return pieces.join('')
}

function * pieceTogether (result: object): Generator<string> {
  let piece = ''
  yield * write(result)
  yield piece

  function * write (value: unknown): Generator<string> {
    if (value === null || typeof value !== 'object') {
      piece += JSON.stringify(value)
      if (piece.length < CHARACTERS_A_TURN) return
      yield piece
      piece = ''
    } else if (Array.isArray(value)) {
      yield * writeAll('[', ']', value.entries(), false)
    } else {
      yield * writeAll('{', '}', Object.entries(value).filter(([, member]) => member !== undefined), true)
    }
  }

  function * writeAll (open: string, close: string, entries: Iterable<[string | number, unknown]>, named: boolean): Generator<string> {
    let separator = open
    for (const [name, member] of entries) {
      piece += named ? `${separator}${JSON.stringify(name)}:` : separator
      yield * write(member)
      separator = ','
    }
    piece += separator === open ? `${open}${close}` : close
  }
}

const texts = new WeakMap<object, string>()

/** Keeps the text of a result for `textOf`. */
export function keepText (result: object, text: string): void {
  texts.set(result, text)
}

/** Returns the text of a result, as JSON. */
export function textOf (result: object): string {
  return texts.get(result) ?? JSON.stringify(result)
}
