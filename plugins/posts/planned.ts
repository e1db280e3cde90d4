import type { Identity } from '../access/identity.ts'
import type { Core } from '../core.ts'
import type { HookRunner } from '../hooks/index.ts'
import { repeatRegularly } from '../support/repeat.ts'
import { MAX_DRAFTS_PER_STATEMENT } from './drafts.ts'
import type { PostChanges } from './post-changes.ts'
import type { PostRecords } from './posts.ts'

const SECONDS = 2

interface Dependencies extends Pick<Core, 'lifecycle'> {
  records: Pick<PostRecords, 'drafts'>
  changes: PostChanges
  hooks: HookRunner
  createHostCaller: Identity['createHostCaller']
}

/**
 * Publishes drafts whose time has come (contract 22.4). Every node looks for them every two seconds. The times are in
 * the database, so a node that is killed, or does not reach it, only leaves them to the next look of some node.
 */
export function publishPlanned (
  { lifecycle, records: { drafts }, changes, hooks, createHostCaller }: Dependencies
): void {
  const hasHook = hooks.has('beforePostCreate') || hooks.has('onPostCreate')

  const failure = 'Drafts whose time has come could not be published'
  repeatRegularly(lifecycle, { seconds: SECONDS, failure }, async () => {
    const due = await drafts.listDue()
    if (due.length === 0) return false
    await drafts.cancelOfDisabled()
    // Hooks run in a transaction for each post.
    if (!hasHook) return await drafts.publishDue() === MAX_DRAFTS_PER_STATEMENT
    for (const draft of due) await changes.publishDue(createHostCaller({ via: 'api' }), draft)
    return false
  })
}
