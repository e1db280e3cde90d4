import { ApolloClient, ApolloLink, InMemoryCache } from '@apollo/client'
import { GraphQLWsLink } from '@apollo/client/link/subscriptions'
import { Client, fetchExchange, gql, subscriptionExchange } from '@urql/core'
import { createClient as createEventClient } from 'graphql-sse'
import { createClient as createSocketClient, type ClientOptions } from 'graphql-ws'
import { WebSocket } from 'ws'

const POSTS = 'subscription ($after: String) { postCreated(after: $after) { title cursor } }'

/** What a client is told of, and what it has to go on from. */
export interface Reader {
  host: string
  /** The cursor of the last post that it has seen, also while it comes back by itself. */
  readonly variables: { after: string }
  take (answer: { data?: unknown }): void
  /** Resolves when it may come back. */
  back (): Promise<void>
}

/** Clients that people use: each subscribes to all posts, and tells how to stop. */
export const clients: Readonly<Record<string, (reader: Reader) => () => void>> = {
  'graphql-ws' ({ host, variables, take, back }) {
    const client = createSocketClient(bySocket(host, back))
    client.subscribe({ query: POSTS, variables }, { next: take, error: fail, complete () {} })
    return () => void client.dispose()
  },

  'Apollo Client' ({ host, variables, take, back }) {
    const resume = new ApolloLink((operation, forward) => forward(Object.assign(operation, { variables })))
    const link = resume.concat(new GraphQLWsLink(createSocketClient(bySocket(host, back))))
    const client = new ApolloClient({ link, cache: new InMemoryCache() })
    const subscription = client.subscribe({ query: gql(POSTS) }).subscribe({ next: take, error: fail })
    return () => subscription.unsubscribe()
  },

  'urql, by a socket' ({ host, variables, take, back }) {
    const socket = createSocketClient(bySocket(host, back))
    const exchange = subscriptionExchange({
      forwardSubscription: ({ query }) => ({ subscribe: (sink) => ({ unsubscribe: socket.subscribe({ query: query!, variables }, sink as never) }) }),
    })
    const client = new Client({ url: `http://${host}/graphql`, exchanges: [exchange] })
    return client.subscription(POSTS, {}).subscribe(take).unsubscribe
  },

  // It takes the end of a stream for that of the subscription, and tells it with the last post once more: it is for its
  // user to subscribe again.
  'urql, by events' ({ host, variables, take, back }) {
    const client = new Client({ url: `http://${host}/graphql`, exchanges: [fetchExchange], fetchSubscriptions: true })
    let stop: () => void
    subscribe()
    return () => stop()

    function subscribe (): void {
      stop = client.subscription(POSTS, { ...variables }).subscribe((result) => {
        if (result.hasNext) take(result)
        else back().then(subscribe)
      }).unsubscribe
    }
  },

  'graphql-sse' ({ host, variables, take, back }) {
    const client = createEventClient({ url: `http://${host}/graphql`, headers: () => ({ 'last-event-id': variables.after }), retry: back })
    client.subscribe({ query: 'subscription { postCreated { title cursor } }' }, { next: take, error: fail, complete () {} })
    return () => client.dispose()
  },
}

const bySocket = (host: string, back: () => Promise<void>): ClientOptions => ({ url: `ws://${host}/graphql`, webSocketImpl: WebSocket, retryWait: back })

function fail (error: unknown): never {
  throw new Error('a client has given up', { cause: error })
}
