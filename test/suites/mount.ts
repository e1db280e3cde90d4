import { runFolders } from '../helpers/run-folder.ts'

runFolders('mount', 'host-api', 'client', 'idempotency')
