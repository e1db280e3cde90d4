import { runTogether } from '../helpers/run-together.ts'

runTogether('mount/!(distant-database|loaded-modules).test.ts', 'testing/*.test.ts')
