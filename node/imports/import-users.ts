import {
  insertPasswordKinds, listPasswordKinds, openSignerKey, sealSignerKey, type PasswordKind,
} from '../../db/sign-in/password-kinds.ts'
import type { Database } from '../../db/tables/index.ts'
import { checkUsers, createSeenUsers, importUsers as insertUsers, type ImportConflict } from '../../db/users/import-users.ts'
import { kindOfNewHashes } from '../../plugins/sign-in/passwords/passwords.ts'
import { impossibleHash, IMPORT_LIMITS, workOf, type HashLimits, type StoredHash } from '../../schema/sign-in/passwords/stored-hash.ts'
import type { Options } from '../../schema/options/options.ts'
import { noRoles } from '../../schema/options/roles.ts'
import type { UserFields } from '../../schema/users/user-fields.ts'
import { terminalContext } from '../commands/audit.ts'
import type { FirebaseConfig } from './firebase-config.ts'
import { importFile, type ImportOptions, type ImportResult } from './import-file.ts'
import { RejectedLine } from './parse-line.ts'
import { createUserParser, type ParsedUser } from './parse-user.ts'

// The values of the host's fields need the most of it.
const BATCH_BYTES = 4 * 1024 * 1024

/** How many kinds of hashes there may be. Every failed login takes the work of all of them. */
export const MAX_KINDS = 10

export interface UserImportOptions extends ImportOptions {
  readonly options: Pick<Options, 'passwordHash' | 'secret' | 'formerSecret'> & Partial<Pick<Options, 'roles'>>
  readonly fields: UserFields
  readonly firebase?: FirebaseConfig | undefined
}

/** The result of an import of users, with how many of the imported ones are admins. */
export interface UserImportResult extends Omit<ImportResult, 'counted'> { readonly admins: number }

const reasons: Readonly<Record<ImportConflict, string>> = {
  email: 'email is the address of a user, or of an earlier line',
  id: 'id is that of a user, or of an earlier line',
  deleted: 'id is that of a user who is being deleted: try again in a minute',
  field: 'a value that must be unique is that of another user',
}

const reasonOf = (conflict: ImportConflict | undefined): string | undefined => conflict && reasons[conflict]

/** Imports the users of a file, as `importFile` does. */
export async function importUsers (
  { options, fields, firebase, ...given }: UserImportOptions
): Promise<UserImportResult> {
  const { roles = noRoles } = options
  const parse = createUserParser({ fields, roles, limits: limitsOf(options), firebase, now: Date.now() })
  const kinds = await createKinds(given.db, options, firebase)
  const { counted: admins, ...result } = await importFile<ParsedUser>({
    member: 'user',
    batchBytes: BATCH_BYTES,

    parse (bytes) {
      const parsed = parse(bytes)
      kinds.admit(parsed?.hash)
      return parsed
    },

    async store (trx, lines) {
      await insertPasswordKinds(trx, kinds.toStore(lines))
      return (await insertUsers(trx, lines.map(({ user }) => user), terminalContext, fields)).map(reasonOf)
    },

    beginCheck: createSeenUsers,
    check: async (trx, lines) => (await checkUsers(trx, lines.map(({ user }) => user))).map(reasonOf),
    count: ({ user: { role } }) => role === 'admin' ? 1 : 0,
  }, given)
  return { ...result, admins }
}

// A cost that is usual here is no attack.
function limitsOf ({ passwordHash: { memoryKiB, passes } }: Pick<Options, 'passwordHash'>): HashLimits {
  const { argon2 } = IMPORT_LIMITS
  return {
    argon2: {
      memoryKiB: Math.max(argon2.memoryKiB, memoryKiB),
      passes: Math.max(argon2.passes, passes),
      memoryTimesPasses: Math.max(argon2.memoryTimesPasses, memoryKiB * passes),
    },
  }
}

// The kinds of hashes that there are, and those that a file adds.
async function createKinds (
  db: Database, options: UserImportOptions['options'], firebase: FirebaseConfig | undefined
) {
  const own = kindOfNewHashes(options.passwordHash)
  const stored = new Map((await listPasswordKinds(db)).map((kind) => [kind.kind, kind]))
  const groupOf = (hash: StoredHash) => workOf(hash).group
  const groups = new Set([own, ...stored.keys()].map((kind) => groupOf(impossibleHash(kind))))
  const sealed = new Map<string, PasswordKind>()
  const opened = new Map<string, Buffer>()

  // The key is stored anew where it is given, since the one that is stored may need a secret that is lost.
  function kindOf ({ kind }: StoredHash, keyId: string | undefined): PasswordKind {
    const isGiven = keyId !== undefined && keyId === firebase?.keyId
    const known = sealed.get(kind) ?? (isGiven ? undefined : stored.get(kind))
    if (known) return known
    const added = { kind, signerKey: isGiven ? sealSignerKey(options, kind, firebase!.signerKey) : null }
    sealed.set(kind, added)
    return added
  }

  // A hash of Firebase is the encrypted signer key, so it has its length.
  function signerKeyOf ({ kind }: StoredHash, keyId: string): Buffer | undefined {
    if (keyId === firebase?.keyId) return firebase.signerKey
    const sealedKey = stored.get(kind)?.signerKey
    if (sealedKey == null) return undefined
    const known = opened.get(kind) ?? openSignerKey(options, kind, sealedKey)
    opened.set(kind, known)
    return known
  }

  return {
    /** Throws `RejectedLine` if a hash could not be checked without another key, or if it is of one kind too many. */
    admit (hash: StoredHash | undefined): void {
      if (!hash) return
      const keyId = keyIdOf(hash)
      if (keyId !== undefined && keyId !== firebase?.keyId && !stored.has(hash.kind)) {
        throw new RejectedLine('passwordHash is of a Firebase project whose parameters --firebase-config does not give')
      }
      const bytes = keyId === undefined ? undefined : signerKeyOf(hash, keyId)?.length
      if (hash.family === 'scrypt' && bytes !== undefined && hash.hash.length !== bytes) {
        throw new RejectedLine(
          `passwordHash has a hash of ${hash.hash.length} bytes: the signer key of its Firebase project has ${bytes}`
        )
      }
      const group = groupOf(hash)
      if (!groups.has(group) && groups.size >= MAX_KINDS) {
        throw new RejectedLine(`passwordHash is of one kind more than the ${MAX_KINDS} that there may be`)
      }
      groups.add(group)
    },

    /** Returns the kinds of the hashes of users, without the one of this installation. */
    toStore: (users: readonly ParsedUser[]): PasswordKind[] => {
      const all = users.flatMap(({ hash }) => hash && hash.kind !== own ? [kindOf(hash, keyIdOf(hash))] : [])
      return [...new Map(all.map((kind) => [kind.kind, kind])).values()]
    },
  }
}

const keyIdOf = (hash: StoredHash): string | undefined =>
  hash.family === 'scrypt' ? hash.firebase?.keyId : undefined
