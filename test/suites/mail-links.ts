import { runFolders } from '../helpers/run-folder.ts'

runFolders('mail-links', 'outbox', 'audit')
