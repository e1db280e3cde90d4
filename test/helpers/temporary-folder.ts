import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

/** Creates a folder that is deleted when the test ends. Unlike `t.testdir()`, every call creates another one. */
export function temporaryFolder (t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'usher-test-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}
