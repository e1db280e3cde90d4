import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/{auth,claims,refresh,passwords,sign-up,email-*,safe-changes,sessions,audit*}.test.ts')
