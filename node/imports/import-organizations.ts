import {
  countMemberships, createSeenOrganizations, findCandidates, findSeen, findTaken, insertOrganizations, storeSeen,
  type Candidate, type ImportedOrganization,
} from '../../db/organizations/import-organizations.ts'
import { isUuid } from '../../db/driver/postgres.ts'
import type { Database } from '../../db/tables/index.ts'
import { OWNER, type Organizations } from '../../schema/options/organizations.ts'
import { foldEmail } from '../../schema/strings/address.ts'
import { terminalContext } from '../commands/audit.ts'
import { importFile, type ImportOptions, type ImportResult } from './import-file.ts'
import { tellProblems } from './parse-line.ts'
import { createOrganizationParser, type ParsedMember, type ParsedOrganization } from './parse-organization.ts'

// Some thousand members.
const BATCH_BYTES = 256 * 1024

export interface OrganizationImportOptions extends ImportOptions { readonly organizations: Organizations }

/** The result of an import of organisations, with how many members the imported ones have. */
export interface OrganizationImportResult extends Omit<ImportResult, 'counted'> { readonly members: number }

/** What a line becomes: what is stored, or why it is rejected. */
type Decision = ImportedOrganization | string

/** Imports the organisations of a file with their members, as `importFile` does. */
export async function importOrganizations (
  { organizations: settings, ...given }: OrganizationImportOptions
): Promise<OrganizationImportResult> {
  const { counted: members, ...result } = await importFile<ParsedOrganization>({
    member: 'organization',
    batchBytes: BATCH_BYTES,
    task: 'organizations import',
    parse: createOrganizationParser(settings, Date.now()),

    async store (trx, lines) {
      const candidates = await candidatesOf(trx, lines, true)
      const [taken, joined] = [await findTaken(trx, lines), await countMemberships(trx, candidates.ids)]
      const decisions = decide(lines, { candidates, taken, joined, settings })
      await insertOrganizations(trx, storedOf(decisions), terminalContext, settings.fields)
      return decisions.map(reasonOf)
    },

    beginCheck: createSeenOrganizations,
    async check (trx, lines) {
      const candidates = await candidatesOf(trx, lines, false)
      const seen = await findSeen(trx, lines, candidates.ids)
      const [taken, joined] = [await findTaken(trx, lines), await countMemberships(trx, candidates.ids)]
      for (const key of seen.taken) taken.add(key)
      for (const [id, count] of seen.joined) joined.set(id, (joined.get(id) ?? 0) + count)
      const decisions = decide(lines, { candidates, taken, joined, settings })
      await storeSeen(trx, storedOf(decisions))
      return decisions.map(reasonOf)
    },

    count: ({ members }) => members.length,
  }, given)
  return { ...result, members }
}

const reasonOf = (decision: Decision): string | undefined => typeof decision === 'string' ? decision : undefined
const storedOf = (decisions: readonly Decision[]): ImportedOrganization[] =>
  decisions.filter((decision) => typeof decision !== 'string')

/** The users whom lines name. */
interface Candidates {
  readonly ids: readonly string[]
  find (member: ParsedMember): Candidate | undefined
}

// Returns the users whom lines name, locked if they are to become members: nobody else then adds a membership of them,
// or disables or deletes them.
async function candidatesOf (
  db: Database, lines: readonly ParsedOrganization[], isLocked: boolean
): Promise<Candidates> {
  const members = lines.flatMap((line) => line.members)
  const found = await findCandidates(db, {
    ids: members.flatMap((member) => 'userId' in member && isUuid(member.userId) ? [member.userId] : []),
    emails: members.flatMap((member) => 'email' in member ? [member.email] : []),
    isLocked,
  })
  const byId = new Map(found.map((candidate) => [candidate.id, candidate]))
  const byKey = new Map(found.map((candidate) => [candidate.key, candidate]))
  return {
    ids: [...byId.keys()],
    find: (member) => 'userId' in member ? byId.get(member.userId) : byKey.get(foldEmail(member.email)),
  }
}

/** What the decisions about lines depend on. Those that are imported are added to `taken` and `joined`. */
interface Known {
  readonly candidates: Candidates
  readonly taken: Set<string>
  readonly joined: Map<string, number>
  readonly settings: Pick<Organizations, 'maxPerUser'>
}

// Decides about lines one after the other.
function decide (lines: readonly ParsedOrganization[], known: Known): Decision[] {
  const { taken, joined } = known
  return lines.map((line) => {
    const { id, slug } = line
    const problems = [
      ...taken.has(slug) ? ['slug is that of an organisation, or of an earlier line'] : [],
      ...id !== undefined && taken.has(id) ? ['id is that of an organisation, or of an earlier line'] : [],
    ]
    const members = membersOf(line, known, problems)
    if (problems.length > 0) return tellProblems(problems)
    for (const key of [slug, ...id === undefined ? [] : [id]]) taken.add(key)
    for (const { userId } of members) joined.set(userId, (joined.get(userId) ?? 0) + 1)
    return { ...line, members }
  })
}

// Returns the members of a line, and adds what is wrong with them to the problems.
function membersOf (
  { members }: ParsedOrganization, { candidates, joined, settings: { maxPerUser } }: Known, problems: string[]
): ImportedOrganization['members'] {
  const places = new Map<string, number>()
  let hasOwner = false
  const found = members.flatMap((member, place) => {
    const name = `members.${place}`
    const user = candidates.find(member)
    if (!user) {
      problems.push('email' in member ? `${name}.email is the address of no user` : `${name}.userId is the id of no user`)
      return []
    }
    const { id: userId, emailVerified, canLogIn } = user
    // Somebody else may have an account with an address that nobody has verified.
    if ('email' in member && !emailVerified) {
      problems.push(`${name}.email is an address that its user has not verified: name the user by userId`)
    }
    const former = places.get(userId)
    if (former !== undefined) problems.push(`${name} is the same user as members.${former}`)
    places.set(userId, place)
    if ((joined.get(userId) ?? 0) >= maxPerUser) {
      problems.push(`${name} is a user who is a member of ${maxPerUser} organisations, and may not be one of more`)
    }
    hasOwner ||= member.role === OWNER && canLogIn
    return [{ userId, role: member.role }]
  })
  // Otherwise it is not known whether one of the others is one.
  if (!hasOwner && found.length === members.length) problems.push('members must have an owner who can log in')
  return found
}
