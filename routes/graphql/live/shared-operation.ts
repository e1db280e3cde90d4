import type { GraphQLFormattedError } from 'graphql'
import type { PostRow } from '../../../db/posts.ts'
import type { PostEvent, PostStream } from '../../../plugins/posts/post-stream.ts'
import { positionOf } from '../../../plugins/posts/recent-posts.ts'
import { encodePlace } from '../../../schema/cursor.ts'
import type { ByteBudget } from './quotas.ts'
import { waitForTimeSlice } from './time-slice.ts'

const EVENTS_AHEAD = 100
// By how much less the next events are expected to take than the largest one before.
const SIZE_DECAY = 0.9
// Of what a subscriber has not taken yet: with that much it need not have more for now.
const OCTETS_AT_HAND = 64 * 1024
// With that much it is slower than the others.
const OCTETS_BEHIND = 1024 * 1024

/** What takes the events of a subscription. */
export interface Sink {
  /** The client's network, see `networkOf`. */
  readonly network: string
  /** Octets that it was given and has not taken yet. */
  readonly waiting: number
  /** Hears, before any event, after which cursor they begin. */
  begin? (cursor: string): void
  /** Takes an event as JSON; `cursor` is that of its post. */
  deliver (event: string, cursor: string): void
  /** Resolves when it has taken all, or will take no more. */
  drain (): Promise<void>
  /** Hears that the subscription has failed, and gets no more events. */
  fail (errors: readonly GraphQLFormattedError[]): void
}

/** Whoever gets the events of a subscription, and up to where it has got them. */
export interface Subscriber { readonly sink: Sink, position: number }

/** What a shared operation does for its subscribers. */
export interface Work {
  /** An event as JSON. */
  render (event: PostEvent): Promise<string>
  /** All there is has been delivered. */
  onIdle (operation: SharedOperation): void
  /** A subscriber is slower than others, and is none any more. */
  onSlow (operation: SharedOperation, subscriber: Subscriber): void
  /** An event could not be made, so there can be no more: each would miss the one before. */
  onFailed (operation: SharedOperation, error: unknown): void
  /** What events made ahead and posts read ahead may take, of all operations together. */
  readonly ahead: ByteBudget
}

/** A subscription that is run once for all its subscribers: each event is made and serialized once. */
export class SharedOperation {
  readonly #stream: PostStream
  readonly #work: Work
  readonly #subscribers = new Set<Subscriber>()
  // Up to where events have been delivered, and how many are on their way.
  #delivered: number
  #pending = 0
  #draining = false
  // Characters that an event is expected to have.
  #size = 0
  #onLeave = () => {}

  constructor (stream: PostStream, work: Work) {
    this.#stream = stream
    this.#work = work
    this.#delivered = stream.position
    stream.onIdle = () => { if (this.#pending === 0) work.onIdle(this) }
  }

  /** Up to where its subscribers have got the events. */
  get position (): number {
    return this.#pending === 0 ? this.#stream.position : this.#delivered
  }

  /** Whether it can serve who has got the events up to a position: without going far back for it, or waiting for others. */
  suits (position: number): boolean {
    return !this.#draining && (this.position === position || (this.#stream.live && this.position < position))
  }

  add (subscriber: Subscriber): void {
    this.#subscribers.add(subscriber)
  }

  /** Whether it had that subscriber. */
  remove (subscriber: Subscriber): boolean {
    const found = this.#subscribers.delete(subscriber)
    if (found) this.#onLeave()
    return found
  }

  get deserted (): boolean {
    return this.#subscribers.size === 0
  }

  /** Tells its subscribers that they get no more events, and leaves them. */
  fail (errors: readonly GraphQLFormattedError[]): void {
    const failed = [...this.#subscribers]
    this.#subscribers.clear()
    for (const { sink } of failed) sink.fail(errors)
  }

  /** Gives its subscribers to another one that has come no further. */
  moveTo (other: SharedOperation): void {
    for (const subscriber of this.#subscribers) {
      subscriber.position = this.position
      other.add(subscriber)
    }
    this.#subscribers.clear()
  }

  close (): void {
    this.#stream.close()
  }

  /** The same posts, from another position on. */
  streamFrom (position: number): PostStream {
    return this.#stream.fork(position)
  }

  /** Delivers the events of the stream in their order, until it is closed or fails. Some are made ahead. Never rejects. */
  async run (): Promise<void> {
    const fail = (error: unknown) => this.#work.onFailed(this, error)
    let delivered = Promise.resolve()
    await this.#drain()
    try {
      for await (const event of this.#stream) {
        this.#pending++
        await waitForTimeSlice()
        const taken = this.#takeAhead()
        const rendering = this.#work.render(event)
        // Its turn to be delivered may come long after it was rejected.
        rendering.catch(() => {})
        delivered = delivered.then(() => this.#finish(rendering, event.postCreated, taken)).catch(fail)
        // Where there is no room for more, an event is made only when the one before is gone.
        if (taken === 0 || this.#pending >= EVENTS_AHEAD || this.#isFull) await delivered
        if (this.#isFull) await this.#pause()
      }
    } catch (error) {
      await delivered
      fail(error)
    }
  }

  // As many bytes as the largest of the last events had; nothing is known of the first one.
  #takeAhead (): number {
    return this.#size > 0 && this.#work.ahead.tryTake(this.#size) ? this.#size : 0
  }

  async #finish (rendering: Promise<string>, post: PostRow, taken: number): Promise<void> {
    try {
      const text = await rendering
      this.#size = Math.max(text.length, Math.ceil(this.#size * SIZE_DECAY))
      await this.#drain()
      this.#deliver(text, positionOf(post), encodePlace(post))
    } finally {
      this.#work.ahead.give(taken)
    }
  }

  // Waits until a subscriber can take more. The posts that were read ahead are read again later if there is no room for
  // them: many subscribers that do not read would otherwise each hold a page.
  async #pause (): Promise<void> {
    const bytes = this.#stream.bytesAhead
    const taken = this.#work.ahead.tryTake(bytes)
    if (!taken) this.#stream.release()
    await this.#drain()
    if (taken) this.#work.ahead.give(bytes)
  }

  #deliver (event: string, position: number, cursor: string): void {
    this.#pending--
    for (const subscriber of this.#subscribers) {
      if (subscriber.position >= position) continue
      if (subscriber.sink.waiting > OCTETS_BEHIND && this.#subscribers.size > 1) {
        this.#subscribers.delete(subscriber)
        this.#work.onSlow(this, subscriber)
      } else {
        subscriber.position = position
        subscriber.sink.deliver(event, cursor)
      }
    }
    this.#delivered = position
    if (this.#pending === 0 && this.#stream.idle) this.#work.onIdle(this)
  }

  get #isFull (): boolean {
    for (const { sink } of this.#subscribers) if (sink.waiting < OCTETS_AT_HAND) return false
    return !this.deserted
  }

  // The quickest sets the pace. One that has left need not be waited for.
  async #drain (): Promise<void> {
    while (this.#isFull) {
      this.#draining = true
      const left = new Promise<void>((resolve) => { this.#onLeave = resolve })
      await Promise.race([left, ...[...this.#subscribers].map(({ sink }) => sink.drain())])
      this.#draining = false
    }
  }
}
