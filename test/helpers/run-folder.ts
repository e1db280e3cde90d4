import { globSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'

/**
 * Runs the test files of a folder in this process, apart from those of its subfolders and those that need a process of
 * their own (`*.alone.test.ts`). Starting a process and loading Usher takes longer than most test files.
 */
export function runFolder (folder: string): void {
  runFiles(folder, '!(*.alone).test.ts')
}

/** Runs the test files that match any of the patterns, relative to `folder`, in this process. */
export function runFiles (folder: string, ...patterns: string[]): void {
  const files = globSync(patterns, { cwd: folder }).sort()
  // The tests of the files run after this one, in the order of the files. Without it, tap would end the process as soon
  // as the tests of one file are done, while the next file still starts its app.
  t.test(`${files.length} files share a process`, async (t) => {
    t.not(files.length, 0)
    for (const file of files) await import(pathToFileURL(join(folder, file)).href)
  })
}
