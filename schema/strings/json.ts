// PostgreSQL and `JSON.stringify` go through JSON recursively, so deeper values would exhaust their stacks.
const LEVELS = 32

/** Returns what is wrong with a value that is to be stored or signed as JSON, or undefined if nothing is. */
export function problemOfJson (value: unknown, bytes: number): string | undefined {
  const problem = find(value, LEVELS)
  if (problem) return problem
  return Buffer.byteLength(JSON.stringify(value)) > bytes ? `must be at most ${bytes} bytes of JSON` : undefined
}

function find (value: unknown, levels: number): string | undefined {
  if (value === null || typeof value === 'boolean') return undefined
  if (typeof value === 'string') return problemOfText(value)
  if (typeof value === 'number') {
    return Number.isFinite(value) ? undefined : 'must not contain a number that is not finite'
  }
  if (typeof value !== 'object' || !isPlain(value)) return 'must be JSON'
  if (levels === 0) return `must have at most ${LEVELS} levels`
  for (const [key, member] of Object.entries(value)) {
    // Like `JSON.stringify`, this treats a member that is undefined as absent.
    if (member === undefined && !Array.isArray(value)) continue
    const problem = problemOfText(key) ?? find(member, levels - 1)
    if (problem) return problem
  }
  return undefined
}

// PostgreSQL's jsonb rejects NUL and lone surrogates.
function problemOfText (text: string): string | undefined {
  return text.includes('\0') || !text.isWellFormed() ? 'must not contain control characters' : undefined
}

function isPlain (value: object): boolean {
  if (Array.isArray(value)) return true
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
