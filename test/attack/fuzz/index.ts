import type { Attack } from '../context.ts'
import { chooseNames, type Choice } from '../options.ts'
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
export const attacks: readonly Attack[] = [
  rest, graphql, rawHttp, multipart, sockets, malformedFrames, eventStreams, disorder, slow, logins, costly,
]

/** Returns the attacks chosen on the command line. Throws an `Error` if a name is unknown. */
export function chooseAttacks (choice: Choice): readonly Attack[] {
  const names = chooseNames(attacks.map(({ name }) => name), choice)
  return attacks.filter(({ name }) => names.includes(name))
}
