import { runTogether } from '../helpers/run-together.ts'

runTogether('plugins/auth/{passwords,signing-{algorithm,keys},tokens}.test.ts')
