import { createConfig, lintFromString } from '@redocly/openapi-core'

const rules = {
  // Redirects answer with 3XX only, and health checks have nothing to reject.
  'operation-2xx-response': 'off',
  'operation-4xx-response': 'off',
  // `resumable` is no id, so `/api/uploads/{id}/record` and `/api/uploads/resumable/{id}` differ.
  'no-ambiguous-paths': 'off',
} as const

/** Returns what a linter finds wrong in an OpenAPI document: a sentence for each problem, with its place. */
export async function lintApi (document: object): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended-strict'], rules })
  const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: 'openapi.json', config })
  return problems.map(({ message, location }) => `${location[0]?.pointer ?? '#'}: ${message}`)
}
