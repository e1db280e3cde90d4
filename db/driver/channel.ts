/**
 * Returns the name of the notification channel for an event. It contains the PostgreSQL schema, since several may share
 * a database.
 */
export function channelOf (
  schema: string,
  event: 'session_ended' | 'post_created' | 'keys_changed' | 'outbox_written' | 'consumers_changed' | 'limits_cleared' |
    'upload_changed'
): string {
  return `${schema}_${event}`
}
