// A message of a library may be long, and what a provider says about an error may be anything.
const REASON_CHARACTERS = 300
const MAX_CAUSES = 10

/** Returns an error and its causes. Those of libraries may be anything that has a message. */
export function causes (error: unknown): unknown[] {
  const found: unknown[] = []
  for (let cause = error; isError(cause) && found.length < MAX_CAUSES; cause = cause.cause) found.push(cause)
  return found
}

/**
 * Returns what an error and its causes say, for the log. The messages of the libraries have no tokens and no codes.
 * @param characters how many it has at most
 */
export function reasonOf (error: unknown, characters = REASON_CHARACTERS): string {
  const texts = causes(error).flatMap((cause) => {
    const { message, error: code, error_description: description } = cause as Record<string, unknown>
    return [message, code, description].filter((text) => typeof text === 'string' && text !== '')
  })
  return texts.join(': ').replace(/\p{Cc}/gu, ' ').slice(0, characters)
}

const isError = (value: unknown): value is { cause?: unknown } =>
  value instanceof Error || (typeof value === 'object' && value !== null && 'message' in value)
