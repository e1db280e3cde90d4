import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/{docs,errors,health,redirect,slow-bodies,unix-socket}.test.ts')
