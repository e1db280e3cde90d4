import { sql, type RawBuilder } from 'kysely'
import { hasRoleOfHost, userState } from '../users/user-states.ts'
import type { MigrationIndex } from './indexes.ts'
import type { Migration } from './migration.ts'

/** What the migration does for one capability. */
interface Part {
  /** Indexes of tables that exist, which are built first. */
  indexes? (s: RawBuilder<unknown>): readonly MigrationIndex[]
  /** Statements, separated by semicolons. */
  change (s: RawBuilder<unknown>): RawBuilder<unknown>
}

/**
 * The roles of a host (contract 20.1). Which names there are depends on its options, so only their shape is checked.
 * Every row meets the new condition, because it has met the former one, so none is read to validate it.
 */
const roles: Part = {
  indexes: (s) => [
    // Nodes of 0.1.0 list users by the index users_state, whose only roles are `admin` and others. Of a service without
    // roles of the host, this one is empty.
    { name: 'users_role_state', on: sql`${s}.users (role, ${userState}, id) where ${hasRoleOfHost}` },
  ],
  change: (s) => sql`
alter table ${s}.users drop constraint users_role_check,
  add constraint users_role_check check (role ~ '^[a-z][a-z0-9-]{0,39}$') not valid`,
}

const parts: readonly Part[] = [roles]

/** What has come after release 0.1.0, by capability. */
export const after010: Migration = {
  indexes: (schema) => parts.flatMap(({ indexes }) => indexes?.(sql.id(schema)) ?? []),
  afterwards: (schema) => sql.join(parts.map(({ change }) => change(sql.id(schema))), sql`;\n`),
}
