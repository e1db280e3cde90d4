import { sql } from 'kysely'

/**
 * The user whom a delivery is about, as text: the user of an event or of a mail, or the author of a post. The index
 * `outbox_owner` has this expression, so it must remain as it is.
 */
export const deliveryOwner = sql<string | null>`coalesce(data ->> 'userId', data ->> 'authorId')`
