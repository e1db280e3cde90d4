import type { NewPost } from '../../db/posts/change-posts.ts'
import type { Caller } from '../access/caller.ts'

/** Returns who writes a post. */
export const actorOf = ({ actor, token }: Caller): Pick<NewPost, 'actorId' | 'token'> =>
  ({ actorId: actor?.id ?? null, token })
