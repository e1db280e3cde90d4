import type { FastifyInstance } from 'fastify'
import type { DocumentWork } from '../../schema/document-work.ts'
import { TooManyDocuments } from '../../schema/errors.ts'
import { networkOf } from '../../schema/network.ts'

const NETWORKS_KEPT = 10_000

type Limit = FastifyInstance['usherOptions']['graphql']['documents']

/** A token bucket. */
class Bucket {
  readonly #limit: Limit
  #left: number
  #since = performance.now()

  constructor (limit: Limit) {
    this.#limit = limit
    this.#left = limit.burst
  }

  /** Whether something is left. */
  get open (): boolean {
    const now = performance.now()
    const { burst, perMinute } = this.#limit
    this.#left = Math.min(burst, this.#left + (now - this.#since) * perMinute / 60_000)
    this.#since = now
    return this.#left > 0
  }

  /** Takes more than there is, if need be: a large document must not be refused forever. */
  take (amount: number): void {
    this.#left -= amount
  }
}

/** Bounds the time that a network, and all networks together, may have new documents validated and compiled. */
export class DocumentBudget {
  readonly #perNetwork: Limit
  readonly #total: Bucket
  readonly #networks = new Map<string, Bucket>()

  constructor ({ documents, allDocuments }: FastifyInstance['usherOptions']['graphql']) {
    this.#perNetwork = documents
    this.#total = new Bucket(allDocuments)
  }

  /** Charges a new document to the network of an address. Throws `TooManyDocuments`. */
  charge (address: string | undefined, work: DocumentWork): void {
    const bucket = this.#bucketOf(networkOf(address))
    if (!bucket.open || !this.#total.open) throw new TooManyDocuments()
    const milliseconds = estimate(work)
    bucket.take(milliseconds)
    this.#total.take(milliseconds)
  }

  #bucketOf (network: string): Bucket {
    const bucket = this.#networks.get(network) ?? new Bucket(this.#perNetwork)
    this.#networks.delete(network)
    this.#networks.set(network, bucket)
    if (this.#networks.size > NETWORKS_KEPT) this.#networks.delete(this.#networks.keys().next().value!)
    return bucket
  }
}

// An estimate rather than the time that was measured, because that also grows when other processes use the processor. On a
// slow machine, a field takes about 20 µs to validate and as much to compile, and a pair less than 1 µs.
function estimate ({ fields, pairs }: DocumentWork): number {
  return 0.3 + 0.04 * fields + 0.001 * pairs
}
