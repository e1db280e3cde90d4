import type { PostEvent, PostStream } from '../../plugins/post-stream.ts'
import { positionOf } from '../../plugins/recent-posts.ts'

const EVENTS_AHEAD = 100
// Of what a subscriber has not taken yet: with that much it need not have more for now.
const OCTETS_AT_HAND = 64 * 1024
// With that much it is slower than the others.
const OCTETS_BEHIND = 1024 * 1024

/** What takes the events of a subscription. */
export interface Taker {
  /** Octets that it was given and has not taken yet. */
  readonly waiting: number
  /** Hears, before any event, after which position they begin. */
  begin? (position: number): void
  /** Takes an event as JSON; `position` is that of its post. */
  deliver (event: string, position: number): void
  /** Resolves when it has taken all, or will take no more. */
  drain (): Promise<void>
}

/** Whoever gets the events of a subscription, and up to where it has got them. */
export interface Subscriber { readonly taker: Taker, position: number }

/** What a shared operation does for its subscribers. */
export interface Work {
  /** An event as JSON. */
  render (event: PostEvent): Promise<string>
  /** All there is has been delivered. */
  onIdle (operation: SharedOperation): void
  /** A subscriber is slower than others, and is none any more. */
  onSlow (operation: SharedOperation, subscriber: Subscriber): void
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
    return this.#subscribers.delete(subscriber)
  }

  get deserted (): boolean {
    return this.#subscribers.size === 0
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

  /** Until it is closed. Events are made ahead, and delivered in their order. */
  async run (): Promise<void> {
    let delivered = Promise.resolve()
    for await (const event of this.#stream) {
      const rendered = this.#work.render(event)
      this.#pending++
      delivered = delivered.then(async () => {
        const text = await rendered
        await this.#drain()
        this.#deliver(text, positionOf(event.postCreated))
      })
      if (this.#pending >= EVENTS_AHEAD) await delivered
    }
  }

  #deliver (event: string, position: number): void {
    this.#pending--
    for (const subscriber of this.#subscribers) {
      if (subscriber.position >= position) continue
      if (subscriber.taker.waiting > OCTETS_BEHIND && this.#subscribers.size > 1) {
        this.#subscribers.delete(subscriber)
        this.#work.onSlow(this, subscriber)
      } else {
        subscriber.position = position
        subscriber.taker.deliver(event, position)
      }
    }
    this.#delivered = position
    if (this.#pending === 0 && this.#stream.idle) this.#work.onIdle(this)
  }

  // The quickest sets the pace.
  async #drain (): Promise<void> {
    for (const { taker } of this.#subscribers) if (taker.waiting < OCTETS_AT_HAND) return
    if (this.deserted) return
    this.#draining = true
    await Promise.race([...this.#subscribers].map(({ taker }) => taker.drain()))
    this.#draining = false
  }
}
