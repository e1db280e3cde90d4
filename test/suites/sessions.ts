import { runTogether } from '../helpers/run-together.ts'

runTogether('plugins/auth/{first-admin,passwords,sessions,signing-{algorithm,keys},sign-ups,tokens,recognised-networks}.test.ts')
