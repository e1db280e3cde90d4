import type { GraphQLFormattedError } from 'graphql'
import type { PostStream } from '../../../plugins/posts/post-stream.ts'
import { positionOf, type Followed } from '../../../plugins/posts/recent-posts.ts'
import { encodePlace } from '../../../schema/http/cursor.ts'
import type { BytePool } from '../limits/byte-pool.ts'
import { ENOUGH_BYTES, type Sink } from './sink.ts'
import { waitForTimeSlice } from '../../../plugins/streams/time-slice.ts'

// Events that may be rendered before they can be delivered.
const EVENTS_AHEAD = 100
// The factor by which the expected size of events falls with each smaller event.
const SIZE_DECAY = 0.9
// A subscriber with more unread bytes is slow.
const SLOW_BYTES = 1024 * 1024

/** A subscriber's sink, and the position up to which it has received all events. */
export interface Subscriber { readonly sink: Sink, position: number }

/** What a shared operation needs from the engine of subscriptions. */
export interface Work {
  /** Returns an event as JSON. */
  render (event: Followed): Promise<string>
  /** Called when all existing events have been delivered. */
  onIdle (operation: SharedOperation): void
  /** Called when a subscriber has been removed because it is slower than others. */
  onSlow (operation: SharedOperation, subscriber: Subscriber): void
  /**
   * Called when an event could not be rendered. It must call `fail`, so that the subscribers receive no later event.
   */
  onFailed (operation: SharedOperation, error: unknown): void
  /** The bytes that events rendered ahead and read ahead may have, in all operations together. */
  readonly ahead: BytePool
}

/** A subscription that is executed once for all its subscribers. Each event is rendered once. */
export class SharedOperation {
  readonly #stream: PostStream<Followed>
  readonly #work: Work
  readonly #subscribers = new Set<Subscriber>()
  // The position up to which events have been delivered, and the number of events that are being rendered or wait for
  // delivery.
  #delivered: number
  #pending = 0
  #draining = false
  // Characters that the next event is expected to have.
  #size = 0
  #onLeave = () => {}

  constructor (stream: PostStream<Followed>, work: Work) {
    this.#stream = stream
    this.#work = work
    this.#delivered = stream.position
    stream.onIdle = () => { if (this.#pending === 0) work.onIdle(this) }
  }

  /** The position up to which the subscribers have received all events. */
  get position (): number {
    return this.#pending === 0 ? this.#stream.position : this.#delivered
  }

  /**
   * Returns whether a subscriber at a position can join without waiting for slow subscribers or for much older events.
   */
  suits (position: number): boolean {
    return !this.#draining && (this.position === position || (this.#stream.live && this.position < position))
  }

  add (subscriber: Subscriber): void {
    this.#subscribers.add(subscriber)
  }

  /** Removes a subscriber. Returns whether it was subscribed. */
  remove (subscriber: Subscriber): boolean {
    const found = this.#subscribers.delete(subscriber)
    if (found) this.#onLeave()
    return found
  }

  get hasNoSubscribers (): boolean {
    return this.#subscribers.size === 0
  }

  /** Notifies the subscribers of a failure and removes them. */
  fail (errors: readonly GraphQLFormattedError[]): void {
    const failed = [...this.#subscribers]
    this.#subscribers.clear()
    for (const { sink } of failed) sink.fail(errors)
  }

  /** Moves the subscribers to another operation whose position is the same or lower. */
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

  /** Returns another stream of the same events that begins after a position. */
  streamFrom (position: number): PostStream<Followed> {
    return this.#stream.fork(position)
  }

  /**
   * Delivers the events of the stream in order, until it is closed or fails. Some events are rendered ahead. Never
   * rejects.
   */
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
        // The rejection is handled when the event is due, which may be much later. Until then it must not count as
        // unhandled.
        rendering.catch(() => {})
        delivered = delivered.then(() => this.#finish(rendering, event, taken)).catch(fail)
        // If there is no room for events rendered ahead, the next one is rendered after this one has been delivered.
        if (taken === 0 || this.#pending >= EVENTS_AHEAD || this.#isFull) await delivered
        if (this.#isFull) await this.#pause()
      }
    } catch (error) {
      await delivered
      fail(error)
    }
  }

  // Reserves the expected size of an event. The size of the first event is unknown, so nothing is reserved for it.
  #takeAhead (): number {
    return this.#size > 0 && this.#work.ahead.tryTake(this.#size) ? this.#size : 0
  }

  async #finish (rendering: Promise<string>, event: Followed, taken: number): Promise<void> {
    try {
      const text = await rendering
      this.#size = Math.max(text.length, Math.ceil(this.#size * SIZE_DECAY))
      await this.#drain()
      this.#deliver(text, positionOf(event), encodePlace(event))
    } finally {
      this.#work.ahead.give(taken)
    }
  }

  // Waits until a subscriber needs more. If there is no room for the events that were read ahead, they are released and
  // read again later. Otherwise each of many subscribers that do not read would keep a page in memory.
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
      if (subscriber.sink.waiting > SLOW_BYTES && this.#subscribers.size > 1) {
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
    for (const { sink } of this.#subscribers) if (sink.waiting < ENOUGH_BYTES) return false
    return !this.hasNoSubscribers
  }

  // Waits for the fastest subscriber, or until one leaves.
  async #drain (): Promise<void> {
    while (this.#isFull) {
      this.#draining = true
      const leaving = new Promise<void>((resolve) => { this.#onLeave = resolve })
      await Promise.race([leaving, ...[...this.#subscribers].map(({ sink }) => sink.drain())])
      this.#draining = false
    }
  }
}
