import { runFolders } from '../helpers/run-folder.ts'

runFolders('http', 'uploads')
