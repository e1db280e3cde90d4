import { Type } from '@sinclair/typebox'
import { ApiKey } from '../sign-in/api-keys.ts'
import { defineError } from '../http/errors.ts'
import { pageQuery } from '../http/params.ts'
import { Id, Instant, nullable } from '../strings/text.ts'

export const DeliveryNotFound = defineError('DELIVERY_NOT_FOUND', 'There is no such failed delivery', 404)

const RowCount = Type.Object({
  count: Type.Integer(),
  isExact: Type.Boolean({ description: 'False if there are more than 10,000: then it is an estimate' }),
})

const DayOfOverview = Type.Object({
  day: Type.String({ description: 'A date, in UTC' }),
  signUps: Type.Integer({ description: 'New users: by sign-up, by an admin, by an import or by the host' }),
  logins: Type.Integer(),
  failedLogins: Type.Integer(),
})

/** The response of GET /api/admin/overview (contract 18.1). */
export const Overview = Type.Object({
  version: Type.String({ description: 'The version of Usher' }),
  database: Type.Object({
    version: Type.String({ description: 'The version of PostgreSQL' }),
    roundTripMs: Type.Number(),
    processes: Type.Integer({ description: 'How many processes of Usher listen to the database' }),
    notifications: Type.Boolean({ description: 'Whether this process receives notifications' }),
  }),
  users: RowCount,
  posts: RowCount,
  uploads: Type.Object({
    ...RowCount.properties,
    bytes: Type.Unsafe<number | null>({
      type: ['integer', 'null'], description: 'Of all files together; null until this process has measured it',
    }),
  }),
  deliveries: Type.Object({
    waiting: Type.Integer({ description: 'Events and mails that wait, up to 10,000' }),
    retrying: Type.Integer({ description: 'Those of them that have failed before' }),
    failed: Type.Integer({ description: 'Those that were given up' }),
  }),
  backupAgeSeconds: Type.Unsafe<number | null>({
    type: ['integer', 'null'], description: 'The time since the last complete backup; null if none is known',
  }),
  days: Type.Array(DayOfOverview, { description: 'The last 30 days, oldest first' }),
}, { title: 'Overview', description: 'What an admin has to know about the service' })

const kinds = ['event', 'mail'] as const
const Kind = Type.Unsafe<typeof kinds[number]>({ type: 'string', enum: kinds })

/** A delivery of an event or a mail that was given up. */
export const Delivery = Type.Object({
  id: Id,
  kind: Kind,
  consumer: Type.String({ description: 'The handler or webhook; `mail` for a mail' }),
  type: Type.String({ description: 'The name of the event; `mail` for a mail' }),
  subject: Type.String({ description: 'The user, post or upload that an event is about' }),
  userId: nullable('The id of the user that it concerns; null if there is none'),
  recipient: nullable('The address to which a mail could not be sent; null for an event'),
  attempts: Type.Integer(),
  error: Type.String({ description: 'The message of the last error' }),
  createdAt: Instant,
  failedAt: Instant,
}, { title: 'Delivery', description: 'A delivery of an event or a mail that was given up' })

export const DeliveryList = Type.Array(Delivery, { description: 'Deliveries, newest first' })

const { limit } = pageQuery('Deliveries')

/** The query of GET /api/admin/deliveries. */
export const ListDeliveries = Type.Object({
  kind: Type.Optional(Kind),
  limit,
  after: Type.Optional(Type.String({
    pattern: '^[0-9]{1,18}\\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
    description: 'The cursor of the page, from the `Link` header of the previous page',
  })),
})

/** The query of GET /api/admin/keys. */
export const ListAllKeys = Type.Object(pageQuery('Keys'))

export const OwnedApiKeyList = Type.Array(Type.Object({
  ...ApiKey.properties, userId: Type.String({ description: 'Whose key it is' }),
}, { title: 'OwnedApiKey', description: 'An API key, with its user' }), {
  description: 'API keys of all users that have not expired, newest first',
})

/** The response of GET /api/admin/settings. */
export const SettingList = Type.Array(Type.Object({
  name: Type.String(),
  value: nullable('As text; null if it is not set. Secrets are masked'),
  source: Type.String({ description: 'Where the value comes from' }),
}, { title: 'Setting', description: 'A setting of the node' }), {
  description: 'The settings of the node, in the order of its documentation; none if a host has mounted Usher',
})

/** What settings are about, in the order in which the console shows them. */
export const settingGroups = [
  'node', 'database', 'pages', 'access', 'sessions', 'mail', 'uploads', 'limits', 'other',
] as const

export type SettingGroup = typeof settingGroups[number]

/** A setting of the node, as admins see it. */
export interface ShownSetting {
  readonly name: string
  readonly value: string | null
  readonly source: string
  /** What it is about, for the console; absent for what is in none of the groups. */
  readonly group?: SettingGroup
}
