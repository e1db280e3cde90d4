import { runFolders } from '../helpers/run-folder.ts'

runFolders('pages', 'console', 'settings', 'units')
