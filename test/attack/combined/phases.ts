/** The configuration of a process of attackers. */
export interface AttackerConfiguration {
  /** The name of the attack. */
  readonly attack: string
  readonly slow: number
  readonly longWinded: string
}

/** Starts or ends a phase. `port` is that of the node or of the decoy. */
export interface Phase {
  readonly type: 'attack' | 'pause' | 'measure'
  readonly port: number
  readonly seconds?: number
}

/** What the normal users measured in a phase. */
export interface Sample {
  readonly seconds: number
  readonly requests: number
  /** The number of responses with a 2xx status. */
  readonly good: number
  /** The number of other outcomes, by status or error. */
  readonly failures: Record<string, number>
  /** Latencies in milliseconds, from the moment at which a request was due. */
  readonly p50: number
  readonly p99: number
  readonly longest: number
}
