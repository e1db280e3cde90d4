import { runTogether } from '../helpers/run-together.ts'

runTogether('node/{home,http-server,npm-start,secret,settings}.test.ts')
