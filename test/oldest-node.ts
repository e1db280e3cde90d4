// What depends on Node.js, for `.ci/run` with the oldest supported one: HTTP, streams and sockets.
import { runFiles } from './helpers/run-folder.ts'

runFiles(
  import.meta.dirname,
  'http/{slow-bodies,unix-socket,http-server,pipelining,waiting-requests}.test.ts',
  'uploads/streams.test.ts'
)
