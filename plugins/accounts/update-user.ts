import { batchCalls, postponed, type Client } from '../../db/batching/batching.ts'
import type { UserRow } from '../../db/tables/index.ts'
import { isShareable, separate, updateUsers, type UserUpdate } from '../../db/users/batch-update-users.ts'
import type { Core } from '../core.ts'
import { createInTurn } from '../support/in-turn.ts'

const USERS_A_WRITE = 100

/**
 * Creates the function that changes a user. Changes of different users share a statement if they can (docs/speed.md,
 * point 3). Changes of the same user never do: they take effect in the order of the calls, except that those of the
 * role or `disabled` by somebody else do not wait.
 */
export function createUserUpdates (
  { database: { db, writeInTime }, telemetry: { batch }, options: { userFields, deadlines } }: Core
) {
  // A change waits, and is sent again if it came too late, for as long as any other write
  // (`db/driver/write-in-time.ts`).
  const timeoutMs = deadlines.write
  const inTurn = createInTurn({ timeoutMs })
  const write = batchCalls(writeTogether, { size: USERS_A_WRITE, timeoutMs, telemetry: batch('users.update') })

  // Whether the callers may still act was checked when the batch was sent. Changes that come too late are put into
  // another batch, and then that is checked again.
  async function writeTogether (updates: UserUpdate[]): Promise<(UserRow | Error | typeof separate |
    typeof postponed)[]> {
    let isLate = false
    const late = new Error('The database has begun the statement too late')
    try {
      return await writeInTime((until) => updateUsers(db, updates, until, userFields), async () => {
        if (isLate) throw late
        isLate = true
      })
    } catch (error) {
      if (error === late) return updates.map(() => postponed)
      throw error
    }
  }

  /**
   * Changes a user. Rejects with `UserNotFound`, `PreconditionFailed`, `Overloaded`, the errors of `client`, and those
   * of `alone`.
   * @param client the client that may have to be confirmed
   * @param alone makes the change in a transaction of its own
   */
  return async function update (change: UserUpdate, client: Client, alone: () => Promise<UserRow>): Promise<UserRow> {
    const { id, changes, actorId } = change
    const shareable = isShareable(changes)
    // What takes permissions away must not wait for whatever the user keeps sending.
    if ((changes.role !== undefined || changes.disabled !== undefined) &&
      (!shareable || (actorId !== id && inTurn.isBusy(id)))) {
      return alone()
    }
    return inTurn.run(id, async () => {
      const result = shareable ? await write(change, client) : separate
      return result === separate ? alone() : result
    })
  }
}
