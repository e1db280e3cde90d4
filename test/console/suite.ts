import { runFolder } from '../helpers/run-folder.ts'

runFolder(import.meta.dirname)
