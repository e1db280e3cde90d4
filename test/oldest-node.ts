// What depends on Node.js, for `.ci/run` with the oldest supported one: HTTP, streams, files, sockets and the client.
import { runTogether } from './helpers/run-together.ts'

runTogether(
  'client/*.test.ts',
  'routes/{slow-bodies,unix-socket,uploads,uploads-streams,waiting-requests}.test.ts',
  'node/{http-server,pipelining,settings}.test.ts'
)
