import { runFolders } from '../helpers/run-folder.ts'

runFolders('sign-in')
