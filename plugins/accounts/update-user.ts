import { batchCalls, postponed } from '../../db/batching/batching.ts'
import { tooLate } from '../../db/driver/write-in-time.ts'
import type { Database, UserRow } from '../../db/tables/index.ts'
import { isShareable, separate, updateUsers, type UserUpdate } from '../../db/users/batch-update-users.ts'
import { updateUser, type Changes } from '../../db/users/update-user.ts'
import type { Match } from '../../schema/http/entity-tag.ts'
import type { Caller } from '../access/caller.ts'
import type { Sessions } from '../access/sessions.ts'
import type { Audit } from '../audit/index.ts'
import type { Core } from '../core.ts'
import type { UndoLinks } from '../mail-links/undo-links.ts'
import { createInTurn } from '../support/in-turn.ts'

const USERS_A_WRITE = 100

interface Dependencies extends Core {
  audit: Audit
  sessions: Sessions
  undoLinks: UndoLinks
}

/** A change of a user that is permitted. */
export interface UserChange {
  /** In lower case. */
  id: string
  changes: Changes
  /** The versions that the user may have. */
  match: Match
  /** Throws unless the caller may change the user, who is locked; the change then shares no transaction either. */
  authorize?: ((user: Pick<UserRow, 'id' | 'role'>) => void) | undefined
  /** Runs in the transaction of the change, which then shares none. If it throws, nothing is changed. */
  inTransaction?: ((trx: Database, user: UserRow) => Promise<void>) | undefined
}

/**
 * Creates the function that changes a user. Changes of different users share a statement if they can (docs/speed.md,
 * point 3). Changes of the same user never do: they take effect in the order of the calls, except that those of the
 * role or `disabled` by somebody else do not wait.
 */
export function createUserUpdates (
  {
    database: { db, writeInTime, writeOnce }, telemetry: { batch }, options: { userFields, deadlines }, audit, sessions,
    undoLinks,
  }: Dependencies
) {
  // A change waits, and is sent again if it came too late, for as long as any other write
  // (`db/driver/write-in-time.ts`).
  const timeoutMs = deadlines.write
  const inTurn = createInTurn({ timeoutMs })
  const updateShared = batchCalls(updateTogether, {
    size: USERS_A_WRITE, timeoutMs, telemetry: batch('users.update'),
  })

  // Whether the callers may still act was checked when the batch was sent. Changes that come too late are put into
  // another batch, and then that is checked again.
  async function updateTogether (updates: UserUpdate[]): Promise<(UserRow | Error | typeof separate |
    typeof postponed)[]> {
    const results = await writeOnce((until) => updateUsers(db, updates, until, userFields))
    return results === tooLate ? updates.map(() => postponed) : results
  }

  // Makes a change in a transaction of its own.
  async function updateAlone (
    caller: Caller, { id, changes, match, authorize, inTransaction }: UserChange
  ): Promise<UserRow> {
    const context = {
      ...audit.contextOf(caller),
      membershipId: caller.actor?.organization?.membershipId ?? null,
      ...changes.email === undefined
        ? { undo: null, mails: null }
        : undoLinks.forEmailChange(caller.actor?.id === id, caller.languageOf(id)),
    }
    const options = { fields: userFields, authorize, inTransaction, match }
    const { user, ended } = await writeInTime(
      (until) => updateUser(db, id, changes, { ...context, until }, caller, options), caller
    )
    sessions.markEnded(ended)
    return user
  }

  /**
   * Changes a user. Rejects with `UserNotFound`, `EmailTaken`, `LastAdmin`, `PreconditionFailed`, `Overloaded`,
   * `InvalidToken`, and the errors of `inTransaction`.
   */
  return async function update (caller: Caller, change: UserChange): Promise<UserRow> {
    const { id, changes, match, authorize, inTransaction } = change
    if (authorize || inTransaction) return updateAlone(caller, change)
    const actorId = caller.actor?.id ?? null
    const shareable = isShareable(changes)
    // What takes permissions away must not wait for whatever the user keeps sending.
    if ((changes.role !== undefined || changes.disabled !== undefined) &&
      (!shareable || (actorId !== id && inTurn.isBusy(id)))) {
      return updateAlone(caller, change)
    }
    return inTurn.run(id, async () => {
      const result = shareable
        ? await updateShared({ id, changes, actorId, writer: caller.token, match }, caller)
        : separate
      return result === separate ? updateAlone(caller, change) : result
    })
  }
}
