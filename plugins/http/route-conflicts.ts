import type { FastifyInstance } from 'fastify'

const ADVICE =
  "Mount Usher under a path of its own, for example with { prefix: '/accounts' }, or leave out the part that has the route (without)"

/**
 * Returns the error that explains that a route of Usher exists in the app already. Other errors are returned as they
 * are.
 */
export function explainConflict (error: Error & { code?: string }): Error {
  return error.code === 'FST_ERR_DUPLICATED_ROUTE'
    ? new Error(`usher: ${error.message}. ${ADVICE}`, { cause: error })
    : error
}

/**
 * Collects the routes of Usher's scope. Returns a function that makes routes which the host adds afterwards fail if
 * Usher has them. It does nothing if Usher is mounted below a path, where a host has no routes of its own by accident.
 */
export function collectRoutes (scope: FastifyInstance): (host: FastifyInstance) => void {
  if (scope.prefix !== '') return () => {}
  const ours = new Set<string>()
  scope.addHook('onRoute', ({ method, url }) => { for (const one of [method].flat()) ours.add(`${one} ${url}`) })
  return (host) => {
    host.addHook('onRoute', ({ method: methods, url, constraints = {} }) => {
      for (const method of [methods].flat()) {
        const name = `${method} ${url}`
        // Routes with other constraints, such as another name of the host, are no conflict.
        if (ours.has(name) && host.hasRoute({ method, url, constraints })) {
          throw new Error(`usher: ${name} is a route of Usher. ${ADVICE}`)
        }
      }
    })
  }
}
