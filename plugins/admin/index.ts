import fp from 'fastify-plugin'
import packageJson from 'fastify-usher/package.json' with { type: 'json' }
import { listApiKeyPage, type ApiKeyRow } from '../../db/sign-in/api-keys.ts'
import { countAuditEntries, readDailyCounts, readRowCounts } from '../../db/admin/counts.ts'
import {
  countDeliveries, deleteFailed, listFailed, type DeliveryKind, type FailedDeliveryPage,
} from '../../db/admin/deliveries.ts'
import { readBackupAge } from '../../db/audit/audit.ts'
import { readServerStatus } from '../../db/driver/server-status.ts'
import { retryFailedDelivery } from '../../db/outbox/failures.ts'
import type { Page } from '../../db/tables/page.ts'
import { DeliveryNotFound, type ShownSetting } from '../../schema/admin/admin.ts'
import type { Audit } from '../audit/index.ts'
import type { Caller } from '../access/caller.ts'
import { coreOf, type Core } from '../core.ts'
import type { Database } from '../database/index.ts'
import { showOptions } from './shown-options.ts'
import { purgeRegularly, PURGE_BATCH_SIZE } from '../support/purge.ts'

const DAYS = 30
const DAY_MS = 86_400_000
const COUNT_SECONDS = 60

declare module 'fastify' {
  interface FastifyInstance {
    usherAdmin: Admin
  }
}

export type Admin = ReturnType<typeof createAdmin>

interface Dependencies extends Core {
  database: Database
  audit: Audit
}

interface PageRequest { limit: number, after?: string | undefined }

function createAdmin ({ lifecycle, database, options, audit }: Dependencies) {
  const { db, clock, notifications, totals } = database
  const { version } = packageJson
  // Its only rows that are deleted are the counts of long ago.
  purgeRegularly(lifecycle, 'daily counts of the account log', COUNT_SECONDS, async () =>
    await countAuditEntries(db) ? PURGE_BATCH_SIZE : 0)

  async function readDays () {
    const counts = await readDailyCounts(db, DAYS)
    const countOf = (day: string, ...actions: string[]) => counts
      .filter((row) => row.day === day && actions.includes(row.action)).reduce((sum, { count }) => sum + count, 0)
    return Array.from({ length: DAYS }, (_, index) => {
      const day = new Date(clock.now() - (DAYS - 1 - index) * DAY_MS).toISOString().slice(0, 10)
      return {
        day,
        signUps: countOf(day, 'user.create', 'user.sign-up', 'user.import'),
        logins: countOf(day, 'login'),
        failedLogins: countOf(day, 'login.failed'),
      }
    })
  }

  return {
    /** Counts what was added to the account log, up to a limit. Returns whether there is more. */
    count: () => countAuditEntries(db),

    /** Returns what an admin has to know about the service. Throws `Unauthenticated`, `Forbidden`, `InvalidToken`. */
    async overview (caller: Caller) {
      caller.authorize('service:read')
      const [server, { users, posts, uploads }, deliveries, backupAge, days, stored] = await Promise.all([
        readServerStatus(db), readRowCounts(db), countDeliveries(db), readBackupAge(db), readDays(), totals(),
      ])
      await caller.confirm()
      return {
        version,
        database: {
          version: server.version,
          roundTripMs: Math.round(server.roundTrip * 1000),
          processes: server.nodes,
          notifications: notifications.listening,
        },
        users,
        posts,
        uploads: { ...uploads, bytes: stored?.bytes ?? null },
        deliveries,
        backupAgeSeconds: backupAge === undefined ? null : Math.round(backupAge),
        days,
      }
    },

    /**
     * Returns how many files there are and how much space they take, or undefined until this process has measured it.
     * Throws `Unauthenticated`, `Forbidden`.
     */
    async storage (caller: Caller): Promise<{ files: number, bytes: number } | undefined> {
      caller.authorize('service:read')
      return totals()
    },

    /**
     * Returns a page of the events and mails that could not be delivered, newest first, without what mails contain.
     * Throws `Unauthenticated`, `Forbidden`, `InvalidToken`.
     */
    async listDeliveries (
      caller: Caller, query: PageRequest & { kind?: DeliveryKind | undefined }
    ): Promise<FailedDeliveryPage> {
      caller.authorize('deliveries:list')
      const page = await listFailed(db, query)
      await caller.confirm()
      return page
    },

    /**
     * Delivers a failed delivery again, with new attempts for three days. Throws `Unauthenticated`, `Forbidden`,
     * `DeliveryNotFound`, `InvalidToken`.
     */
    async retryDelivery (caller: Caller, id: string): Promise<void> {
      caller.authorize('deliveries:retry')
      await db.transaction().execute(async (trx) => {
        if (!await retryFailedDelivery(trx, id)) throw new DeliveryNotFound()
        await audit.add(caller, { action: 'delivery.retry' }, trx)
        await caller.confirm()
      })
    },

    /**
     * Deletes a failed delivery. Throws `Unauthenticated`, `Forbidden`, `DeliveryNotFound`, `InvalidToken`.
     */
    async discardDelivery (caller: Caller, id: string): Promise<void> {
      caller.authorize('deliveries:discard')
      await db.transaction().execute(async (trx) => {
        if (!await deleteFailed(trx, id)) throw new DeliveryNotFound()
        await audit.add(caller, { action: 'delivery.discard' }, trx)
        await caller.confirm()
      })
    },

    /**
     * Returns a page of the API keys of all users, newest first. Throws `Unauthenticated`, `Forbidden`, `InvalidToken`.
     */
    async listKeys (caller: Caller, query: PageRequest): Promise<Page<ApiKeyRow & { userId: string }>> {
      caller.authorize('api-keys:list')
      const page = await listApiKeyPage(db, query)
      await caller.confirm()
      return page
    },

    /** Returns the settings of the node, without secrets. Throws `Unauthenticated`, `Forbidden`. */
    settings (caller: Caller): readonly ShownSetting[] {
      caller.authorize('service:read')
      return options.shownSettings?.() ?? []
    },

    /**
     * Returns the options with which a host has mounted the plugin, without what may be secret; none for a node. Throws
     * `Unauthenticated`, `Forbidden`.
     */
    options (caller: Caller): readonly ShownSetting[] {
      caller.authorize('service:read')
      return options.shownSettings ? [] : showOptions(options)
    },
  }
}

/** What admins see and do that is about the service as a whole (contract 18.1). */
export default fp(async function admin (app) {
  app.decorate('usherAdmin', createAdmin({ ...coreOf(app), database: app.usherDatabase, audit: app.usherAudit }))
}, {
  name: 'usher-admin',
  dependencies: ['usher-options', 'usher-telemetry', 'usher-database', 'usher-audit'],
})
