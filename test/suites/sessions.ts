import { runTogether } from '../helpers/run-together.ts'

runTogether('plugins/auth/{credentials,first-admin,passkey-{challenges,verifier},recognised-networks,sessions,sign-ups}.test.ts')
