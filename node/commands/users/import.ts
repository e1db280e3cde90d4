import { describeBytes } from '../../backup/format.ts'
import { readFirebaseConfig } from '../../imports/firebase-config.ts'
import { importFile, type ImportResult } from '../../imports/import-file.ts'
import { listFields } from '../../imports/fields.ts'
import { importedMembers, members } from '../../../schema/users/members.ts'
import { showProgress } from '../../terminal/progress.ts'
import { WrongArguments, type Command } from '../command.ts'
import { withDatabase } from '../with-database.ts'

const needed = importedMembers.filter((name) => members[name].in.import === 'required')
const known = [...importedMembers.filter((name) => members[name].in.import === 'optional'), 'passwordHash']

export default {
  details: 'Nodes may run meanwhile. FILE has one user a line, as JSON (NDJSON):\n' +
    `${needed.join(', ')}, and if they are known ${known.join(', ')},\n` +
    'and the fields of the host. passwordHash is a PHC string of argon2, bcrypt, scrypt, PBKDF2 or firebase-scrypt. The users log in with their old passwords. No existing user is changed, and nobody gets a mail.\n\n' +
    'Lines that are wrong, or whose address or id is taken, are written to FILE.rejected.ndjson with the reason, and the command\n' +
    'exits with 1. If it is interrupted, run it again: it continues where it was.\n\n' +
    '  --dry-run                 check everything and import nobody\n' +
    '  --rejected <file>         the file of rejected lines, by default FILE.rejected.ndjson. It contains password hashes\n' +
    '  --firebase-config <file>  the password hash parameters of a Firebase project, as its console shows them\n' +
    '  --again                   import a file once more that was imported, for example after users were deleted\n' +
    '  --schema <name>           the PostgreSQL schema, by default usher',
  arguments: ['FILE'],
  json: '{ file, imported: number, admins: number, rejected: number, resumed: number, rejectedFile: string or null, ' +
    'finishedAt: time or null, problems: [{ line: number, reason }] }',
  options: {
    'dry-run': { type: 'boolean' },
    rejected: { type: 'string' },
    'firebase-config': { type: 'string' },
    again: { type: 'boolean' },
    schema: { type: 'string' },
  },

  async run (values, [file = ''], shell) {
    const { 'dry-run': dryRun = false, rejected, 'firebase-config': config, again = false, schema } = values
    if (file === '') throw new WrongArguments('users import needs FILE.')
    const path = shell.resolve(file)
    const rejectedPath = shell.resolve(rejected === undefined ? `${path}.rejected.ndjson` : String(rejected))
    if (rejectedPath === path) throw new WrongArguments('--rejected must be another file than FILE.')
    const firebase = config === undefined ? undefined : await readFirebaseConfig(shell.resolve(String(config)))
    const progress = showProgress(shell.messages, dryRun ? 'Checking' : 'Importing', describeBytes)
    const began = performance.now()
    try {
      const result = await withDatabase(shell, async ({ db, options }) => importFile({
        db,
        options,
        fields: await listFields(db, options),
        path,
        rejectedPath,
        firebase,
        dryRun: dryRun === true,
        again: again === true,
        onProgress: progress.update,
      }), schema === undefined ? {} : { schema: String(schema) })
      progress.end()
      const rejectedFile = result.rejected > 0 && !dryRun ? rejectedPath : null
      const seconds = (performance.now() - began) / 1000
      return {
        text: describe(result, { path, rejectedFile, dryRun: dryRun === true, seconds }),
        json: { file: path, ...result, rejectedFile },
        isFailure: result.rejected > 0,
      }
    } finally {
      progress.end()
    }
  },
} satisfies Command

function describe (
  { imported, admins, rejected, resumed, finishedAt, problems }: ImportResult,
  { path, rejectedFile, dryRun, seconds }: {
    path: string, rejectedFile: string | null, dryRun: boolean, seconds: number
  }
): string {
  if (finishedAt) {
    return `${path} was imported on ${finishedAt.toISOString()}: ${count(imported, 'user')}, ${count(rejected, 'rejected line')}. ` +
      'Nothing was changed. To import it once more, add --again.'
  }
  const users = `${count(imported, 'user')} ${dryRun ? 'can be' : imported === 1 ? 'was' : 'were'} imported`
  return [
    `${users}, ${count(admins, 'admin')} among them${resumed > 0 ? `, ${resumed} by an earlier run` : ''}: ${seconds.toFixed(1)} seconds.`,
    ...rejected === 0 ? [] : [`${count(rejected, 'line')} ${rejected === 1 ? 'was' : 'were'} rejected${rejectedFile === null ? ':' : `, see ${rejectedFile}.`}`],
    ...problems.map(({ line, reason }) => `  line ${line}: ${reason}`),
    ...problems.length < rejected && dryRun ? ['  …'] : [],
  ].join('\n')
}

const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`
