import { channelOf } from '../../db/driver/channel.ts'
import type { LiveUploadLink } from '../../db/uploads/upload-links.ts'
import type { UploadRow } from '../../db/uploads/uploads.ts'
import { ActorWatch } from '../access/actor-watch.ts'
import type { Core } from '../core.ts'
import type { UploadLinks } from './links.ts'
import type { Storage } from './storage.ts'

// How often downloads are verified while this node receives no notifications.
const VERIFY_MS = 1000
// For how long a change is remembered that was announced: it may have been announced between the read of a record and
// the start of its download. A read is given up earlier.
const REMEMBERED_MS = 60_000

/** What a download needs, besides the session of its reader (`plugins/access/identity.ts`). */
export interface Permission {
  upload: UploadRow
  /** The link that serves it. Without one, the reader may read the upload. */
  link: LiveUploadLink | undefined
  /** Returns whether the reader may read the upload, now that it is private. */
  mayReadPrivate (): Promise<boolean>
}

/** What was known of notifications when a record was read. */
export interface Mark { readonly connected: boolean, readonly losses: number, readonly at: number }

export type Downloads = ReturnType<typeof createDownloads>

interface Dependencies extends Core {
  storage: Storage
  links: UploadLinks
}

/**
 * Knows the downloads of this node, and stops those whose upload was deleted or made private, whose link was revoked or
 * has expired, or whose owner was deleted, on any node (contract 13.2).
 */
export function createDownloads (
  { lifecycle, database: { notifications }, telemetry: { metrics }, options, storage, links }: Dependencies
) {
  // What to do when something is announced: the texts of the triggers in `db/migrations/0001.ts`.
  const watchers = new Map<string, Set<() => void>>()
  // The announced texts, oldest first, and when.
  const announced = new Map<string, number>()
  // While nothing is announced, the database is asked.
  const verification = new ActorWatch()
  const stopped = metrics.counter(
    'usher_downloads_stopped_total', 'Downloads that were stopped because the permission for them had ended'
  )

  notifications.listen(channelOf(options.schema, 'upload_changed'), announce, () => verification.verifyAll())
  const timer = setInterval(() => { if (!notifications.listening) verification.verifyLater() }, VERIFY_MS).unref()
  lifecycle.addHook('onClose', async () => clearInterval(timer))

  function announce (text: string): void {
    const now = performance.now()
    for (const [known, at] of announced) {
      if (at > now - REMEMBERED_MS) break
      announced.delete(known)
    }
    announced.delete(text)
    announced.set(text, now)
    for (const notify of [...watchers.get(text) ?? []]) notify()
  }

  // Returns a function that stops watching.
  function watchText (text: string, since: number, notify: () => void): () => void {
    const watching = watchers.get(text) ?? new Set()
    watchers.set(text, watching.add(notify))
    if ((announced.get(text) ?? -Infinity) >= since) notify()
    return () => {
      watching.delete(notify)
      if (watching.size === 0) watchers.delete(text)
    }
  }

  async function isPermitted ({ upload: { id }, link, mayReadPrivate }: Permission): Promise<boolean> {
    const upload = await storage.find(id)
    if (!upload) return false
    return link ? links.isLive(link.id) : !upload.isPrivate || mayReadPrivate()
  }

  return {
    /** Call it before the record of the upload is read, and pass the result to `watch`. */
    mark: (): Mark =>
      ({ connected: notifications.connected, losses: notifications.losses, at: performance.now() }),

    /**
     * Calls `onEnd` once when the permission for a download ends, also if that has happened since `mark`. Returns a
     * function that stops watching. Sends no statement while notifications arrive.
     */
    watch (permission: Permission, since: Mark, onEnd: () => void): () => void {
      const { upload, link, mayReadPrivate } = permission
      let isOver = false
      const end = () => {
        if (isOver) return
        isOver = true
        stopped.add()
        onEnd()
      }
      const recheck = () => { mayReadPrivate().then((may) => { if (!may) end() }, end) }
      const mayHaveMissed = !since.connected || since.losses !== notifications.losses
      let isFirst = mayHaveMissed
      const isStillPermitted = () => {
        const asks = isFirst || !notifications.connected
        isFirst = false
        return asks ? isPermitted(permission) : true
      }
      // It may have expired since. Node warns of a negative time.
      const timer = link && setTimeout(end, Math.max(0, link.msLeft - (performance.now() - since.at))).unref()
      const stops = [
        watchText(`deleted ${upload.id}`, since.at, end),
        watchText(`owner ${upload.userId}`, since.at, end),
        link ? watchText(`link ${link.id}`, since.at, end) : watchText(`private ${upload.id}`, since.at, recheck),
        verification.add(isStillPermitted, end),
      ]
      return () => {
        isOver = true
        clearTimeout(timer)
        for (const stop of stops) stop()
      }
    },
  }
}
