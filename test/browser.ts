// The pages in a real browser, which the tests share because it takes seconds to start.
import t from 'tap'
import { runFiles } from './helpers/run-folder.ts'

// All looks of all pages take minutes on a quiet machine.
t.setTimeout(1_800_000)
runFiles('browser/*.browser.ts')
