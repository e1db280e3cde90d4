import { runTogether } from '../helpers/run-together.ts'

runTogether('routes/{design,docs,entity-tags,openapi,pages*}.test.ts')
