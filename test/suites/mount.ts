import { runTogether } from '../helpers/run-together.ts'

runTogether('mount/!(loaded-modules).test.ts', 'testing/*.test.ts')
