import { runTogether } from '../helpers/run-together.ts'

runTogether('mount/{actor-name,every-option,foreign-keys,host,options,prefix,public-path,routes,trace}.test.ts')
