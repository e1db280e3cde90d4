import { execFileSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from './temporary-folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Exports the tree of a commit, with the dependencies of this one, to a temporary folder. Returns the module that runs
 * its node. Throws if the commit is not in the history, as in a shallow clone.
 */
export function exportRelease (commit: string): string {
  const folder = temporaryFolder()
  try {
    execFileSync('git', ['-C', root, 'cat-file', '-e', `${commit}^{commit}`], { stdio: 'ignore' })
  } catch {
    throw new Error(
      `The previous release, commit ${commit}, is not in the history of this clone. Fetch the history first: git fetch --unshallow`
    )
  }
  const archive = execFileSync('git', ['-C', root, 'archive', '--format=tar', commit], { maxBuffer: 256 * 1024 * 1024 })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  return join(folder, 'node/server.ts')
}
