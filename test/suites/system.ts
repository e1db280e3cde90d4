import { runFolders } from '../helpers/run-folder.ts'

runFolders('system')
