import { globSync } from 'node:fs'
import t from 'tap'

/**
 * Runs the test files that match any of the patterns, relative to `test/`, in this process. Starting a process and
 * loading Usher takes longer than most test files, so files that need no process of their own share one.
 */
export function runTogether (...patterns: string[]): void {
  const folder = new URL('..', import.meta.url)
  const files = globSync(patterns, { cwd: folder }).sort()
  // The tests of the files run after this one, in the order of the files. Without it, tap would end the process as soon
  // as the tests of one file are done, while the next file still starts its app.
  t.test(`${files.length} files share a process`, async (t) => {
    t.not(files.length, 0)
    for (const file of files) await import(new URL(file, folder).href)
  })
}
