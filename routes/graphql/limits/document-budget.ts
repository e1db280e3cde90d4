import type { FastifyInstance } from 'fastify'
import type { DocumentWork } from '../../../schema/graphql/document-work.ts'
import { TooManyDocuments } from '../../../schema/graphql/limits.ts'
import { limitOf, type Network } from '../../../schema/http/network.ts'
import { TokenBucket, TokenBuckets, type TokenBucketOptions } from '../../../plugins/support/token-bucket.ts'

/**
 * Limits the time that validating and compiling new documents takes, for each network and for all networks together.
 */
export class DocumentBudget {
  readonly #perNetwork: TokenBucketOptions
  readonly #ofAll: TokenBucketOptions
  readonly #total: TokenBucket
  readonly #networks: TokenBuckets

  constructor ({ documents, allDocuments }: FastifyInstance['usherOptions']['graphql']) {
    this.#perNetwork = documents
    this.#ofAll = allDocuments
    this.#networks = new TokenBuckets(documents)
    this.#total = new TokenBucket(allDocuments)
  }

  /**
   * Charges the work of a new document to the networks of a client. Throws `TooManyDocuments` if a budget is used up.
   */
  charge (networks: readonly Network[], work: DocumentWork): void {
    const buckets = [this.#total, ...networks.map((network) => this.#bucketOf(network))]
    if (buckets.some(({ remaining }) => remaining <= 0)) throw new TooManyDocuments()
    const milliseconds = estimate(work)
    // This may take more than remains. Otherwise a document larger than the budget would always be rejected.
    for (const bucket of buckets) bucket.take(milliseconds)
  }

  #bucketOf (network: Network): TokenBucket {
    const limit = (name: 'burst' | 'perMinute') => limitOf(network, this.#perNetwork[name], this.#ofAll[name])
    return this.#networks.of(network.name, { burst: limit('burst'), perMinute: limit('perMinute') })
  }
}

// Returns an estimate in milliseconds. The measured time is not used, because it also grows when other processes use
// the processor. On a slow machine, a field takes about 20 µs to validate and as much to compile, and a pair less than
// 1 µs.
function estimate ({ fields, pairs }: DocumentWork): number {
  return 0.3 + 0.04 * fields + 0.001 * pairs
}
