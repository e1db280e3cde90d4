import { sql, type ExpressionBuilder } from 'kysely'
import type { Tables } from '../tables/index.ts'
import { undoPeriod } from '../mail-links/undo-links.ts'

/**
 * A condition for a user: the address was not changed in the last seven days, or it is verified. As long as the owner
 * of the former address can undo the change, a link in a mail to the new one must not give the account to whoever has
 * made the change.
 */
export const isProven = ({ or, eb }: ExpressionBuilder<Tables, 'users'>) => or([
  eb('email_verified', '=', true), eb('email_changed_at', 'is', null),
  eb('email_changed_at', '<=', sql<Date>`now() - ${undoPeriod}`),
])
