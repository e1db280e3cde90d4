import { runTogether } from '../helpers/run-together.ts'

runTogether('plugins/auth/{passwords,sessions,signing-keys,tokens,recognised-networks}.test.ts')
