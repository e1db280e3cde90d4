import type { FastifyInstance } from 'fastify'
import type { DocumentWork } from '../../schema/document-work.ts'
import { TooManyDocuments } from '../../schema/graphql-limits.ts'
import { networkOf } from '../../schema/network.ts'
import { TokenBucket, type TokenBucketOptions } from './token-bucket.ts'

const NETWORKS_KEPT = 10_000

/** Limits the time that validating and compiling new documents takes, for each network and for all networks together. */
export class DocumentBudget {
  readonly #perNetwork: TokenBucketOptions
  readonly #total: TokenBucket
  readonly #networks = new Map<string, TokenBucket>()

  constructor ({ documents, allDocuments }: FastifyInstance['usherOptions']['graphql']) {
    this.#perNetwork = documents
    this.#total = new TokenBucket(allDocuments)
  }

  /** Charges the work of a new document to the network of an address. Throws `TooManyDocuments` if a budget is used up. */
  charge (address: string | undefined, work: DocumentWork): void {
    const bucket = this.#bucketOf(networkOf(address))
    if (bucket.remaining <= 0 || this.#total.remaining <= 0) throw new TooManyDocuments()
    const milliseconds = estimate(work)
    // This may take more than remains. Otherwise a document larger than the budget would always be rejected.
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

// Returns an estimate in milliseconds. The measured time is not used, because it also grows when other processes use the
// processor. On a slow machine, a field takes about 20 µs to validate and as much to compile, and a pair less than 1 µs.
function estimate ({ fields, pairs }: DocumentWork): number {
  return 0.3 + 0.04 * fields + 0.001 * pairs
}
