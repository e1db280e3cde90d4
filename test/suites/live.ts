import { runFolders } from '../helpers/run-folder.ts'

runFolders('live', 'posts', 'graphql')
