import { listOrganizationFields } from '../../imports/fields.ts'
import { importOrganizations } from '../../imports/import-organizations.ts'
import type { Command } from '../command.ts'
import { count, importJson, importOptions, runImport } from '../run-import.ts'
import { withDatabase } from '../with-database.ts'
import { requireOrganizations } from './shown.ts'

export default {
  details: 'Nodes may run meanwhile. FILE has one organisation a line, as JSON (NDJSON): name, slug, and members, and if they are known\n' +
    'id, createdAt and fields of yours. A member has a role and the userId of a user, or the verified email. One owner at least must be able to log in.\n' +
    'Import the users first. No existing organisation is changed, nobody gets a mail, and no hook runs.\n\n' +
    'Lines that are wrong, or whose slug or id is taken, are written to FILE.rejected.ndjson with the reason, and the command\n' +
    'exits with 1. Nothing of them is imported. If it is interrupted, run it again: it continues where it was.\n\n' +
    '  --dry-run          check everything and import nothing\n' +
    '  --rejected <file>  the file of rejected lines, by default FILE.rejected.ndjson\n' +
    '  --again            import a file once more that was imported, for example after organisations were deleted\n' +
    '  --schema <name>    the PostgreSQL schema, by default usher',
  arguments: ['FILE'],
  json: importJson('members: number'),
  options: importOptions,

  run: (values, names, shell) => runImport(values, names, shell, {
    command: 'organizations import',
    noun: 'organisation',
    import: (given, schema) => withDatabase(shell, async ({ db, options }) => {
      const organizations = requireOrganizations(options)
      const fields = await listOrganizationFields(db, { schema: options.schema, fields: organizations.fields })
      return importOrganizations({ ...given, db, organizations: { ...organizations, fields } })
    }, schema),
    tell: ({ members }) => `with ${count(members, 'member')}`,
  }),
} satisfies Command
