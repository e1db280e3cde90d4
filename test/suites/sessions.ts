import { runTogether } from '../helpers/run-together.ts'

runTogether('plugins/auth/{first-admin,recognised-networks,sessions,sign-ups}.test.ts')
