import { execFileSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Test } from 'tap'

// The number of threads of libuv, unless UV_THREADPOOL_SIZE says otherwise.
const THREADS = 4

/**
 * Occupies all threads of this process that hash passwords and read files, until they are released or the test ends.
 * Each waits for the other end of a pipe to be opened.
 */
export function occupyThreads (t: Test): { release (): Promise<void> } {
  let released: Promise<void> | undefined
  const release = () => (released ??= openOtherEnd())
  // tap removes the folder of a test before the teardowns run, unless a teardown was added first.
  t.teardown(release)
  const pipe = `${t.testdir()}/pipe`
  execFileSync('mkfifo', [pipe])
  const waiting = Array.from({ length: THREADS }, () => open(pipe, 'r'))

  async function openOtherEnd (): Promise<void> {
    const end = openSync(pipe, 'w')
    for (const file of await Promise.all(waiting)) await file.close()
    closeSync(end)
  }

  return { release }
}
