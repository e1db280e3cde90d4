import { runTogether } from '../helpers/run-together.ts'

runTogether('mount/{runtimes,start-errors,two,upgrades,without}.test.ts', 'testing/*.test.ts')
