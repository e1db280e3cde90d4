import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/{docs,entity-tags,openapi,pages*}.test.ts')
