import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/{account-flows,auth,claims,refresh,step-up,ways-in,passkeys,totp,second-factor,second-factor-required,passwords,sign-up,email-*,safe-changes,sessions,audit*}.test.ts')
