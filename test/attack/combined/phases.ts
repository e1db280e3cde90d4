/** What a process of attackers is told. */
export interface AttackerConfiguration {
  /** Which attack: the name of a file's export. */
  readonly attack: string
  readonly slow: number
  readonly longWinded: string
}

/** Starts or ends a phase. `port` is that of the node or of the decoy. */
export interface Phase { readonly type: 'attack' | 'pause' | 'measure', readonly port: number, readonly seconds?: number }

/** What the normal users saw in a phase. */
export interface Sample {
  readonly seconds: number
  readonly requests: number
  /** Responses of 2xx. */
  readonly good: number
  /** Other responses and lost connections, by what they were. */
  readonly failures: Record<string, number>
  /** Milliseconds from the moment at which a request was due. */
  readonly p50: number
  readonly p99: number
  readonly longest: number
}
