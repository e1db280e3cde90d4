import { runTogether } from '../helpers/run-together.ts'

runTogether('plugins/auth/{check-hash,passwords,signing-{algorithm,keys},tokens}.test.ts')
