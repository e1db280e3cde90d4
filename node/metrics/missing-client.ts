/**
 * Throws a sentence that explains why the metrics could not be loaded: hosts need no client of Prometheus, so it is not
 * a dependency.
 */
export function explainMissingClient (error: Error): never {
  if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
  throw new Error(
    'METRICS_PORT needs a package that is not installed: run "npm install @prometheus-io/client".', { cause: error }
  )
}
