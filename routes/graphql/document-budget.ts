import type { FastifyInstance } from 'fastify'
import type { DocumentWork } from '../../schema/document-work.ts'
import { TooManyDocuments } from '../../schema/errors.ts'
import { networkOf } from '../../schema/network.ts'
import { TokenBucket, type TokenBucketOptions } from './token-bucket.ts'

const NETWORKS_KEPT = 10_000

/** Bounds the time that a network, and all networks together, may have new documents validated and compiled. */
export class DocumentBudget {
  readonly #perNetwork: TokenBucketOptions
  readonly #total: TokenBucket
  readonly #networks = new Map<string, TokenBucket>()

  constructor ({ documents, allDocuments }: FastifyInstance['usherOptions']['graphql']) {
    this.#perNetwork = documents
    this.#total = new TokenBucket(allDocuments)
  }

  /** Charges a new document to the network of an address. Throws `TooManyDocuments`. */
  charge (address: string | undefined, work: DocumentWork): void {
    const bucket = this.#bucketOf(networkOf(address))
    if (bucket.left <= 0 || this.#total.left <= 0) throw new TooManyDocuments()
    const milliseconds = estimate(work)
    // Also more than is left: a large document must not be refused for ever.
    bucket.take(milliseconds)
    this.#total.take(milliseconds)
  }

  #bucketOf (network: string): TokenBucket {
    const bucket = this.#networks.get(network) ?? new TokenBucket(this.#perNetwork)
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
