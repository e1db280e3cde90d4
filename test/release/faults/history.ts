/** A request of a client and the response. Times are milliseconds since the start of the run, measured by one clock. */
export interface Exchange {
  readonly node: number
  readonly start: number
  readonly end: number
  /** 0 if the connection failed. */
  readonly status: number
}

/** A read or a change of one user's name. Every written name is unique. */
export interface RegisterOperation extends Exchange {
  readonly kind: 'read' | 'write'
  readonly register: string
  readonly value: string
}

/** A use of a session's token. */
export interface TokenUse extends Exchange {
  readonly kind: 'read' | 'write' | 'socket'
  /** The title of the post that a write created if it took effect. */
  readonly title?: string
}

/** A session from its login to its end. */
export interface SessionHistory {
  readonly id: string
  readonly cookie: string
  /** The request that ended the session. */
  readonly ending: Exchange
  readonly uses: readonly TokenUse[]
}

export interface Violation {
  readonly rule: string
  readonly evidence: unknown
}
