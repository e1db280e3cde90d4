import { runTogether } from '../../helpers/run-together.ts'

runTogether('mount/loaded-modules.test.ts', 'node/{first-admin,mails,npm-start,secret}.test.ts')
