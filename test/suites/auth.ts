import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/{account-flows,auth,claims,refresh,step-up,totp,second-factor-required,passwords,sign-up,email-*,safe-changes,sessions,audit*}.test.ts')
