import type { UploadWriter } from '../../db/uploads/uploads.ts'
import type { Caller } from '../access/caller.ts'

/** Returns who changes an upload, for the statement of the change. */
export const writerOf = ({ actor, token }: Caller): UploadWriter => actor && { id: actor.id, token: token! }
