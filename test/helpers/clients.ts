import { ApolloClient, ApolloLink, InMemoryCache } from '@apollo/client'
import { GraphQLWsLink } from '@apollo/client/link/subscriptions'
import { Client, fetchExchange, gql, subscriptionExchange } from '@urql/core'
import { createClient as createEventClient } from 'graphql-sse'
import { createClient as createSocketClient, type ClientOptions } from 'graphql-ws'
import { WebSocket } from 'ws'

const POSTS = 'subscription ($after: String) { postCreated(after: $after) { title cursor } }'

/** What a client calls with each result, and what it needs to resume. */
export interface Reader {
  host: string
  /**
   * The variables of the subscription. `after` is the cursor of the last post received, also when the client reconnects
   * by itself.
   */
  readonly variables: { after: string }
  take (answer: { data?: unknown }): void
  /** Resolves when the client may reconnect. */
  back (): Promise<void>
}

/**
 * GraphQL clients that people use. Each function subscribes to all posts and returns a function that stops the
 * subscription.
 */
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
      forwardSubscription: ({ query }) =>
        ({ subscribe: (sink) => ({ unsubscribe: socket.subscribe({ query: query!, variables }, sink as never) }) }),
    })
    const client = new Client({ url: `http://${host}/graphql`, exchanges: [exchange] })
    return client.subscription(POSTS, {}).subscribe(take).unsubscribe
  },

  // urql takes the end of the stream for the end of the subscription, and reports it by delivering the last post again.
  // The application has to subscribe again.
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
    const client = createEventClient({
      url: `http://${host}/graphql`, headers: () => ({ 'last-event-id': variables.after }), retry: back,
    })
    client.subscribe(
      { query: 'subscription { postCreated { title cursor } }' }, { next: take, error: fail, complete () {} }
    )
    return () => client.dispose()
  },
}

const bySocket = (host: string, back: () => Promise<void>): ClientOptions =>
  ({ url: `ws://${host}/graphql`, webSocketImpl: WebSocket, retryWait: back })

function fail (error: unknown): never {
  throw new Error('a client has given up', { cause: error })
}
