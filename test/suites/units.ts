import { runTogether } from '../helpers/run-together.ts'

runTogether('schema/*.test.ts', 'docs/*.test.ts', 'floors.test.ts', 'release/faults/checks.test.ts')
