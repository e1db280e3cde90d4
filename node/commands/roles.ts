import { readOptions } from '../../schema/options/read-options.ts'
import type { Roles } from '../../schema/options/roles.ts'
import { readEnvironment } from '../settings/environment.ts'
import { schemaOf, serviceOptions } from '../settings/service-options.ts'
import type { Shell } from '../terminal/shell.ts'

/** Returns the roles of the host by the settings, before there is a database. Throws an `Error` with a sentence. */
export async function readRolesOf (shell: Shell): Promise<Roles> {
  const settings = await readEnvironment(shell)
  return readOptions({ ...serviceOptions(settings), ...schemaOf(settings) }).roles
}
