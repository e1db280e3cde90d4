import { globSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { isNightly } from './nightly.ts'

const test = join(import.meta.dirname, '..')

/**
 * Runs the test files of folders of test/ and of their subfolders in this process, apart from those that need a process
 * of their own (`*.alone.test.ts`). Starting a process and loading Usher takes longer than most test files.
 */
export function runFolders (...folders: string[]): void {
  runFiles(...folders.map((folder) => `${folder}/**/!(*.alone|*.alone.nightly).test.ts`))
}

/**
 * Runs the files of test/ that match any of the patterns in this process, one after the other. Those named
 * `*.nightly.*` run in the nightly list only.
 */
export function runFiles (...patterns: string[]): void {
  const files = globSync(patterns, { cwd: test }).filter((file) => isNightly || !file.includes('.nightly.')).sort()
  if (files.length === 0) throw new Error(`There are no test files ${patterns.join(', ')}`)
  load(files)
}

// The tests of a file run after the one that loads it, and before the next file is loaded, which may log users in whose
// tests need a session that is not old.
function load ([file, ...rest]: readonly string[]): void {
  t.test(`${file} is loaded`, async () => {
    await import(pathToFileURL(join(test, file!)).href)
    if (rest.length > 0) load(rest)
  })
}
