import type { Origin, Place } from './origins.ts'

/** The configuration of a process of attackers. */
export interface AttackerConfiguration {
  /** The name of the attack. */
  readonly attack: string
  readonly slow: number
  readonly longWinded: string
  /** How many networks attackers have. */
  readonly networks: number
}

/** Starts or ends a phase. `port` is that of the node or of the decoy. */
export interface Phase {
  readonly type: 'attack' | 'pause' | 'measure'
  readonly port: number
  readonly seconds?: number
  /** Where an attack comes from, behind a proxy. Without it, attackers have addresses of this machine. */
  readonly origin?: Origin | undefined
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

/** What honest users of one place have got who did one thing. */
export interface Asked {
  readonly place: Place
  readonly kind: string
  /** Milliseconds, from the moment at which a request was due. */
  readonly latencies: number[]
  /** How often each outcome occurred, `good` among them. */
  readonly outcomes: Record<string, number>
  /** The mails that must arrive, with the time of their requests in milliseconds since 1970. */
  readonly mails: { readonly to: string, readonly since: number }[]
}
