import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/{auth,refresh,passwords,sessions,audit*}.test.ts')
