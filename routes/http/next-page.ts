import type { FastifyReply } from 'fastify'

/**
 * Sets the header `Link` of a list to the path of the next page, if there is one.
 *
 * @param query the parameters of the present page; those that are undefined are left out
 * @param next the cursor of the next page, or null
 */
export function linkNextPage (
  reply: FastifyReply, path: string, query: Record<string, string | number | boolean | undefined>, next: string | null
): void {
  if (next === null) return
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries({ ...query, after: next })) {
    if (value !== undefined) search.set(name, `${value}`)
  }
  reply.header('link', `<${path}?${search}>; rel="next"`)
}
