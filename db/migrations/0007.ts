import { sql } from 'kysely'
import type { Script } from './migration.ts'

/** Failed logins by minute and network, for their events (contract 23.4). Rows live for some minutes. */
export const failedLogins: Script = (schema) => sql`
create table ${sql.id(schema)}.failed_logins (
  minute timestamptz not null,
  network text not null,
  count integer not null,
  primary key (minute, network)
);
`
