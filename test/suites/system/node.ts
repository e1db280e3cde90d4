import { runTogether } from '../../helpers/run-together.ts'

runTogether('mount/loaded-modules.test.ts', 'node/{config-file,first-admin,mails,npm-start,secret}.test.ts')
