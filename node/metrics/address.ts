/** Where metrics are served. */
export interface MetricsAddress {
  host: string
  port: number
}

/** Returns a sentence that explains why metrics cannot be served. */
export function explainMetrics ({ code }: NodeJS.ErrnoException, { host, port }: MetricsAddress): string {
  return code === 'EADDRINUSE'
    ? `METRICS_PORT ${port} is in use on ${host}: stop the program that uses it, or set another METRICS_PORT (0 for any free one).`
    : `Metrics cannot be served on METRICS_HOST ${host} with METRICS_PORT ${port} (${code}): set another one.`
}
