import { setTimeout as delay } from 'node:timers/promises'

const PAUSE_MS = 500

// The codes with which a node refuses requests while a busy machine delays the database or the node for too long.
const TEMPORARY = /^(DATABASE_UNAVAILABLE|OVERLOADED)$/

/** Sends a request again, as any client should, until its code is not temporary. */
export async function whileTemporary<Result> (
  send: () => Promise<Result>, codeOf: (result: Result) => string | undefined
): Promise<Result> {
  for (;;) {
    const result = await send()
    if (!TEMPORARY.test(codeOf(result) ?? '')) return result
    await delay(PAUSE_MS)
  }
}
