import { runTogether } from '../helpers/run-together.ts'

runTogether(
  'routes/{empty-bodies,errors,health,redirect,slow-bodies,unix-socket,waiting-{requests,writes}}.test.ts',
  'node/{home,http-server,import-lines,listeners,pipelining,settings}.test.ts'
)
