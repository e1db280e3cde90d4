import { runTogether } from '../helpers/run-together.ts'

runTogether('mount/*.test.ts', 'testing/*.test.ts')
