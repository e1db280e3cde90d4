import type { DraftRow } from '../../db/posts/drafts.ts'
import type { PostRow } from '../../db/posts/posts.ts'
import type { Caller } from '../access/caller.ts'
import type { Drafts } from './drafts.ts'
import type { PostReadRecords } from './post-reads.ts'

/**
 * Returns a draft of a user with the id of no post; undefined if there is none. It may be published meanwhile, and is
 * then returned as a post.
 */
export async function findUnpublished (
  read: PostReadRecords['read'], drafts: Pick<Drafts, 'read'>, { actor, client }: Pick<Caller, 'actor' | 'client'>,
  id: string
): Promise<PostRow | DraftRow | undefined> {
  if (!actor) return undefined
  return await drafts.read(actor.id, id, client) ?? read(id, client)
}
