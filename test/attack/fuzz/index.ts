import type { Attack } from '../context.ts'
import { costly } from './costly.ts'
import { disorder } from './disorder.ts'
import { eventStreams } from './event-streams.ts'
import { graphql } from './graphql.ts'
import { logins } from './logins.ts'
import { multipart } from './multipart.ts'
import { rawHttp } from './raw-http.ts'
import { rest } from './rest.ts'
import { slow } from './slow.ts'
import { malformedFrames, sockets } from './sockets.ts'

/** All attacks of the fuzzer. */
export const attacks: readonly Attack[] = [rest, graphql, rawHttp, multipart, sockets, malformedFrames, eventStreams, disorder, slow, logins, costly]

/** Returns the attacks of two lists of names, both of which may be empty. Throws an `Error` for an unknown name. */
export function chooseAttacks ({ only, without }: { only: readonly string[], without: readonly string[] }): readonly Attack[] {
  const names = attacks.map(({ name }) => name)
  const unknown = [...only, ...without].find((name) => !names.includes(name))
  if (unknown !== undefined) throw new Error(`there is no attack ${unknown}; there are ${names.join(', ')}`)
  return attacks.filter(({ name }) => (only.length === 0 || only.includes(name)) && !without.includes(name))
}
