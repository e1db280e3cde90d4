import type { components } from './api.ts'

/** The organisation for which a token is, with the user's role in it. */
export type Organization = NonNullable<components['schemas']['TokenReply']['organization']>

/** What a session has got from the server. */
export interface Access<User> {
  readonly token: string
  /** When the client gets a new token, in milliseconds since the epoch. */
  readonly expiresAt: number
  readonly user: User
  /** The organisation for which the token is; null for none. */
  readonly organization: Organization | null
}

/** What the tabs of a browser tell each other. Tokens are never written to storage, which would outlive the tabs. */
export type Message<User> =
  { kind: 'access', access: Access<User> } |
  { kind: 'end', reason: 'logout' | 'expired' } |
  { kind: 'ask', rejected: string | undefined, organizationId: string | null }

/** Connects the clients that share a cookie: the tabs of a browser, or a single client. */
export interface Tabs<User> {
  /** Runs one function at a time, in all tabs. */
  exclusively<Result> (run: () => Promise<Result>): Promise<Result>
  tell (message: Message<User>): void
  /** Resolves after the time in which other tabs answer a question. */
  answered (): Promise<void>
  close (): void
}

// Answers usually take less than a millisecond. A busy tab may take longer, and then the session is refreshed once more
// than needed.
const ANSWER_MS = 50

/** The address of the page or worker. Undefined outside of browsers. In a browser, the cookie belongs to all tabs. */
export const pageUrl: string | undefined = (globalThis as { location?: { href: string } }).location?.href

/** Connects the tabs of a browser by a broadcast channel and, where it exists, a Web Lock. */
export function connectTabs<User> (name: string, hear: (message: Message<User>) => void): Tabs<User> {
  const channel = new BroadcastChannel(name)
  let answer = () => {}
  channel.onmessage = ({ data }) => {
    hear(data as Message<User>)
    answer()
  }
  const alone = createQueue()

  return {
    // Pages that were not loaded by https have no Web Locks. The server gives the same cookie to tabs that refresh at
    // the same time.
    exclusively: (run) => navigator.locks ? navigator.locks.request(name, run) as ReturnType<typeof run> : alone(run),
    tell: (message) => channel.postMessage(message),
    answered: () => new Promise((resolve) => {
      const timer = setTimeout(resolve, ANSWER_MS)
      answer = () => { clearTimeout(timer); resolve() }
    }),
    close: () => channel.close(),
  }
}

/** Returns what a client uses that has its session for itself. */
export function createSingle<User> (): Tabs<User> {
  return { exclusively: createQueue(), tell: () => {}, answered: async () => {}, close: () => {} }
}

function createQueue () {
  let last: Promise<unknown> = Promise.resolve()
  return function enqueue<Result> (run: () => Promise<Result>): Promise<Result> {
    const result = last.then(run)
    last = result.catch(() => {})
    return result
  }
}
