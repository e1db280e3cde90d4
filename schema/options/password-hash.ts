import { availableParallelism } from 'node:os'
import { Type, type Static } from '@sinclair/typebox'

/**
 * OWASP's recommendation for argon2id with one lane,
 * https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html. The memory times the passes of its
 * alternatives, such as 7 MiB with five passes, is at least `MINIMUM_KIB`.
 */
export const RECOMMENDED = { memoryKiB: 19 * 1024, passes: 2 } as const
export const MINIMUM_KIB = 35 * 1024

/** How many passwords a process hashes at the same time. One core stays free for the event loop. */
export const MAX_CONCURRENT_HASHES = Math.max(1, availableParallelism() - 1)

/** The option `passwordHash`: the parameters of argon2id. */
export const PasswordHash = Type.Object({
  memoryKiB: Type.Integer({ default: RECOMMENDED.memoryKiB, minimum: 8, maximum: 1024 * 1024 }),
  passes: Type.Integer({ default: RECOMMENDED.passes, minimum: 1, maximum: 100 }),
}, {
  default: {},
  additionalProperties: false,
  description: 'The cost of password hashes (argon2id); less than the default is for tests only',
})

// Allows undefined, for hosts that compile with exactOptionalPropertyTypes and pass on values that may be undefined.
export type GivenPasswordHash =
  { [Name in keyof Static<typeof PasswordHash>]?: Static<typeof PasswordHash>[Name] | undefined }
