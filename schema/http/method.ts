const methods: ReadonlySet<string> =
  new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT', 'QUERY'])

/**
 * Returns a method as metrics and traces name it. Clients may send many others, and they are all `_OTHER`
 * (OpenTelemetry's term).
 */
export function methodOf (method: string): string {
  return methods.has(method) ? method : '_OTHER'
}
