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
export const attacks: readonly Attack[] = [rest, graphql, rawHttp, multipart, sockets, malformedFrames, eventStreams, disorder, slow, logins, costly]

/** Returns the attacks of the fuzzer that the command line chooses. Throws an `Error` for an unknown name. */
export function chooseAttacks (choice: Choice): readonly Attack[] {
  const names = chooseNames(attacks.map(({ name }) => name), choice)
  return attacks.filter(({ name }) => names.includes(name))
}
