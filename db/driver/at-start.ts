import { readAdmin, type AdminState } from '../users/first-admin.ts'
import { listSigningKeys, type SigningKeyRow } from '../access/signing-keys.ts'
import type { Roles } from '../../schema/options/roles.ts'
import type { Database } from '../tables/index.ts'
import { installationOf } from '../uploads/uploads.ts'
import { listUnknownRoles, type UnknownRole } from '../users/unknown-roles.ts'

/** What the parts of a start read first. */
export interface AtStart {
  signingKeys: SigningKeyRow[]
  installation: string
  admin: AdminState
  unknownRoles: UnknownRole[]
}

/**
 * Reads what the parts of a start would read one after the other, in one round trip. What cannot be read is left out,
 * so that the part that needs it reads it and reports why.
 * @param options.email the address of the first admin
 * @param options.uploads whether there are uploads
 * @param options.roles those of the host
 */
export async function readAtStart (
  db: Database, schema: string, { email, uploads, roles }: { email: string | undefined, uploads: boolean, roles: Roles }
): Promise<Partial<AtStart>> {
  const [signingKeys, installation, admin, unknownRoles] = await Promise.allSettled([
    listSigningKeys(db), uploads ? installationOf(db, schema) : undefined, readAdmin(db, email),
    listUnknownRoles(db, roles),
  ])
  return {
    ...signingKeys.status === 'fulfilled' && { signingKeys: signingKeys.value },
    ...installation.status === 'fulfilled' && installation.value !== undefined && { installation: installation.value },
    ...admin.status === 'fulfilled' && { admin: admin.value },
    ...unknownRoles.status === 'fulfilled' && { unknownRoles: unknownRoles.value },
  }
}
