// What some browsers, pages that were not loaded by https, and React Native lack.

/** Returns a key that no other request has. It need not be secret. */
export function createKey (): string {
  const { crypto } = globalThis as { crypto?: { randomUUID?: () => string } }
  return crypto?.randomUUID?.() ?? `${Date.now().toString(36)}-${random()}-${random()}`
}

const random = () => Math.random().toString(36).slice(2)

/** Returns a signal that is aborted after a time. */
export function timeoutSignal (milliseconds: number): AbortSignal {
  // eslint-disable-next-line no-restricted-properties -- If there is one, it lets the process end before.
  if ('timeout' in AbortSignal) return AbortSignal.timeout(milliseconds)
  const aborter = new AbortController()
  setTimeout(() => aborter.abort(), milliseconds)
  return aborter.signal
}

/**
 * Returns the session cookie that a response sets, in the form of a `Cookie` header, or undefined. Browsers keep it
 * themselves and hide it from scripts.
 */
export function sessionCookieOf ({ headers }: Response): string | undefined {
  // Not `getSetCookie`. A proxy may set cookies of its own, which `get` joins by commas.
  return /(?:^|, )(usher_session=[^;,]*)/.exec(headers.get('Set-Cookie') ?? '')?.[1]
}
