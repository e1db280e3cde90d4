import { runFolders } from '../helpers/run-folder.ts'

runFolders('access', 'accounts', 'organizations', 'users')
