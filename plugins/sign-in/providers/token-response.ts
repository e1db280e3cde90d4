import type { Fetch } from './fetch.ts'

/**
 * Returns a function like another one that leaves out of the responses of a token endpoint what a login does not need
 * and the library would refuse, such as `"refresh_token": null`. A refusal that GitHub sends with the status 200 gets
 * another one.
 */
export function tolerateTokens (fetch: Fetch, endpoint: string | undefined): Fetch {
  return async (url, options) => {
    const response = await fetch(url, options)
    if (endpoint === undefined || url !== new URL(endpoint).href || response.status !== 200) return response
    const text = await response.text()
    const given = objectIn(text)
    const headers = new Headers(response.headers)
    headers.delete('content-length')
    if (!given) return new Response(text, { status: 200, headers })
    const { refresh_token: refreshToken, scope, expires_in: seconds, token_type: type, ...needed } = given
    const body = {
      ...needed,
      ...isFilled(refreshToken) && { refresh_token: refreshToken },
      ...typeof scope === 'string' && { scope },
      ...Number.parseFloat(`${seconds as string}`) > 0 && { expires_in: seconds },
      token_type: type ?? 'bearer',
    }
    const isRefusal = isFilled(given['error']) && given['access_token'] === undefined
    return new Response(JSON.stringify(body), { status: isRefusal ? 400 : 200, headers })
  }
}

const isFilled = (value: unknown): value is string => typeof value === 'string' && value !== ''

function objectIn (text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? value as Record<string, unknown> : undefined
  } catch {
    // The library says what is wrong with it.
    return undefined
  }
}
