/** The notification channel of an event in a Postgres schema. */
export function channelOf (schema: string, event: 'session_ended' | 'post_created' | 'keys_changed'): string {
  return `${schema}_${event}`
}
