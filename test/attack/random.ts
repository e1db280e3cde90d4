/**
 * A seeded generator of random numbers (mulberry32, public domain). The same seed always yields the same sequence, on
 * any machine, so that a lane of the fuzzer can be replayed.
 */
export class Random {
  #state: number

  constructor (seed: number) {
    this.#state = seed >>> 0
  }

  /** Returns a number from 0 up to, but not including, 1. */
  next (): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** Returns an integer from 0 up to, but not including, `end`. */
  below (end: number): number {
    return Math.floor(this.next() * end)
  }

  chance (probability: number): boolean {
    return this.next() < probability
  }

  pick<Item> (items: readonly Item[]): Item {
    return items[this.below(items.length)]!
  }

  /** Returns one of the items, in proportion to their weights. */
  pickWeighted<Item extends { weight: number }> (items: readonly Item[]): Item {
    let left = this.next() * items.reduce((sum, { weight }) => sum + weight, 0)
    return items.find(({ weight }) => (left -= weight) < 0) ?? items.at(-1)!
  }

  bytes (length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)))
  }

  word (length = 8): string {
    return Array.from({ length }, () => this.below(36).toString(36)).join('')
  }

  /** Changes a text at a few places by cutting, repeating, replacing and inserting. */
  mutate (text: string): string {
    let mutated = text
    for (let count = 1 + this.below(4); count > 0; count--) {
      const at = this.below(mutated.length + 1)
      const length = this.below(8)
      switch (this.below(4)) {
        case 0: mutated = mutated.slice(0, at) + mutated.slice(at + length); break
        case 1: mutated =
          mutated.slice(0, at) + mutated.slice(at, at + length).repeat(2) + mutated.slice(at + length); break
        case 2: mutated = mutated.slice(0, at) + String.fromCharCode(this.below(256)) + mutated.slice(at + 1); break
        default: mutated = mutated.slice(0, at) + this.pick(tokens) + mutated.slice(at)
      }
    }
    return mutated
  }
}

const tokens = [
  '"', '{', '}', '[', ']', ':', ',', '\\', '\0', '\r\n', '%', '%00', '\'', '...', '$', '!', '@', '#', '&', '=', '-1',
  '1e309', 'null',
]

/** Derives a seed from a run's seed and the place where it is used (FNV-1a). */
export function deriveSeed (...parts: readonly (string | number)[]): number {
  let hash = 0x811c9dc5
  for (const byte of Buffer.from(parts.join('/'))) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash >>> 0
}
