/**
 * Returns what may be logged about an error: its message could repeat the recipient's address and a link with a token.
 */
export function describeError (thrown: unknown) {
  const error: Error & { code?: unknown, responseCode?: unknown, command?: unknown } =
    thrown instanceof Error ? thrown : new Error(`${thrown}`)
  const { name, message, stack, code, responseCode, command } = error
  const texts = { message: redact(`${message}`).slice(0, 500), stack: redact(`${stack}`.slice(0, 10_000)) }
  return { type: name, ...texts, code, responseCode, command }
}

function redact (text: string): string {
  return text.replaceAll(/[^\s<>"'`:,;()[\]]+@[^\s<>"'`:,;()[\]]+/g, '[address]').replaceAll(/[\w-]{43}/g, '[token]')
}
