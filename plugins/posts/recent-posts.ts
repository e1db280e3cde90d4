import type { ChangedPost } from '../../db/posts/followed.ts'
import type { PostRow } from '../../db/posts/posts.ts'

/** What a stream delivers: a new post, or any change of one. */
export type Followed = PostRow | ChangedPost

const KEPT = 1000
const CHARACTERS_KEPT = 8 * 1024 * 1024

/** Returns the position of an event as a number. There will never be 2^53 of them. */
export const positionOf = ({ position }: Followed): number => Number(position)

/** Returns how many characters of content an event has. */
export const charactersOf = (event: Followed): number =>
  'post' in event ? event.post?.content.length ?? 0 : event.content.length

/** The latest events without a gap: all that have positions after `from`, up to `until`. */
export class RecentPosts<Event extends Followed> {
  from: number
  until: number
  /** The epoch of the last event that was added, or the epoch at the start if there is none. */
  epoch: number
  readonly #events: Event[] = []
  #characters = 0

  constructor (position: number, epoch: number) {
    this.from = this.until = position
    this.epoch = epoch
  }

  /** Adds the events that follow, in order. Drops the oldest ones beyond 1,000 or 8 Mi characters of content. */
  add (events: readonly Event[]): void {
    for (const event of events) {
      this.#events.push(event)
      this.#characters += charactersOf(event)
      this.until = positionOf(event)
      this.epoch = event.epoch
    }
    while (this.#events.length > KEPT || this.#characters > CHARACTERS_KEPT) {
      const oldest = this.#events.shift()!
      this.#characters -= charactersOf(oldest)
      this.from = positionOf(oldest)
    }
  }

  /** Returns the events after a position, which must not be before `from`. */
  after (position: number): Event[] {
    let index = this.#events.length
    while (index > 0 && positionOf(this.#events[index - 1]!) > position) index--
    return this.#events.slice(index)
  }
}
