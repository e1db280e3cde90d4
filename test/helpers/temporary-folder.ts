import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const folders: string[] = []

// Not in a teardown of the test: teardowns run last-in-first-out, so the folder of an app that is created after the
// teardown that closes it would disappear while the app still writes into it.
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
})

/** Creates a folder that is deleted when the process ends. Unlike `t.testdir()`, every call creates another one. */
export function temporaryFolder (): string {
  const folder = mkdtempSync(join(tmpdir(), 'usher-test-'))
  folders.push(folder)
  return folder
}
