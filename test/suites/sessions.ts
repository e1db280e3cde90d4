import { runTogether } from '../helpers/run-together.ts'

runTogether('plugins/auth/{first-admin,passwords,sessions,signing-keys,sign-ups,tokens,recognised-networks}.test.ts')
