import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/{account-flows,auth,claims,refresh,passwords,sign-up,email-*,safe-changes,sessions,audit*}.test.ts')
