/** What performs an operation: a request to a route, an operation of GraphQL, the host through `app.usher`, or something else. */
export type CallSource = 'rest' | 'graphql' | 'api' | 'sign-up' | 'first-admin' | 'command'
