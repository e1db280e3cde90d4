import type { FastifyReply, FastifyRequest } from 'fastify'
import { methodOf } from '../../schema/http/method.ts'
import type { HistogramMetric } from '../../schema/options/metrics.ts'
import { Histogram, SECONDS } from '../../db/telemetry/histogram.ts'

/**
 * The histograms of a route, by method and status. The router knows how many routes there are, so the number is
 * bounded.
 */
type Route = Map<string, Map<number, Histogram>>

/**
 * Counts requests by their duration, method, pattern of the route and status. The address of a request never becomes a
 * label, because clients choose it: all requests to unknown paths share one.
 */
export class RequestDurations {
  readonly #routes = new Map<string | undefined, Route>()

  /** Counts a request whose response was sent. */
  add ({ method, routeOptions: { url } }: FastifyRequest, { statusCode, elapsedTime }: FastifyReply): void {
    let route = this.#routes.get(url)
    if (!route) this.#routes.set(url, route = new Map())
    const name = methodOf(method)
    let statuses = route.get(name)
    if (!statuses) route.set(name, statuses = new Map())
    let histogram = statuses.get(statusCode)
    if (!histogram) statuses.set(statusCode, histogram = new Histogram(SECONDS))
    histogram.observe(elapsedTime / 1000)
  }

  read (): HistogramMetric {
    const samples = [...this.#routes]
      .flatMap(([route = 'unknown', methods]) => [...methods].flatMap(([method, statuses]) =>
        [...statuses].map(([status, histogram]) => histogram.read({
          http_request_method: method, http_route: route, http_response_status_code: String(status),
        }))))
    return {
      name: 'http_server_request_duration_seconds',
      help: 'Time from the head of a request to the end of its response',
      type: 'histogram',
      combine: 'sum',
      samples,
    }
  }
}
