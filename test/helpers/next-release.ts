import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from './temporary-folder.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const PARTS = ['app.ts', 'client', 'db', 'deploy', 'node', 'package.json', 'plugins', 'routes', 'schema', 'testing']
const LIST = /(?<=export const migrations: Migrations = \{[^}]*)(?=\})/

/**
 * Copies this tree, with the migrations of test/helpers/next-migrations.ts, to a temporary folder, as a next release
 * could be. Returns the module that runs its node.
 */
export function createNextRelease (): string {
  const folder = temporaryFolder()
  for (const part of PARTS) cpSync(join(root, part), join(folder, part), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  cpSync(join(root, 'test/helpers/next-migrations.ts'), join(folder, 'db/migrations/next.ts'))
  const list = join(folder, 'db/migrations/index.ts')
  const text = readFileSync(list, 'utf8')
  if (!LIST.test(text)) throw new Error('db/migrations/index.ts does not list the migrations as one object')
  writeFileSync(list, `import { nextMigrations } from './next.ts'\n${text.replace(LIST, '  ...nextMigrations,\n')}`)
  return join(folder, 'node/server.ts')
}
