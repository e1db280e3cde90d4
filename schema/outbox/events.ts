import { Type, type Static, type TObject, type TProperties } from '@sinclair/typebox'
import { AuditEntry } from '../audit/audit.ts'
import type { Visibility } from '../uploads/upload.ts'
import { eventProperties } from '../users/members.ts'
import { Id, Instant, nullable } from '../strings/text.ts'
import { credentialKinds, type CredentialKind } from '../sign-in/ways.ts'

export type { CredentialKind }

const ActorId = Type.Union([Type.String(), Type.Null()], {
  description: 'The id of the user who did it; null if it was the host, the operator or Usher itself',
})

const data = <Properties extends TProperties>(properties: Properties) =>
  Type.Object({ ...properties, actorId: ActorId })

const ofUser = { userId: Id, ...eventProperties }
const ofSession = { userId: Id, sessionId: Id }
const ofCredential = {
  userId: Id,
  kind: Type.Unsafe<CredentialKind>({
    type: 'string',
    enum: credentialKinds,
    description: 'A passkey, an authenticator app, an API key, or an identity at a provider',
  }),
}
const ofUpload = {
  uploadId: Id,
  userId: Id,
  filename: Type.String(),
  mediaType: Type.String(),
  size: Type.Number({ description: 'Bytes' }),
  visibility: Type.Unsafe<Visibility>({ type: 'string', enum: ['public', 'private'] }),
}
const ofOrganization = { organizationId: Id, name: Type.String(), slug: Type.String() }
const ofMembership = { organizationId: Id, membershipId: Id, userId: Id, role: Type.String() }
const ofInvitation = { organizationId: Id, invitationId: Id, email: Type.String(), role: Type.String() }
const ofPost = { postId: Id, authorId: Id, title: Type.String() }
const { id: entryId, at: _, ...ofEntry } = AuditEntry.properties

/**
 * What the events of each name carry as `data` (contract 12.5). They never carry passwords, hashes, tokens or the
 * contents of posts and uploads, and addresses of clients only where the name begins with `audit.` (contract 23.4).
 */
export const eventData = {
  'user.created': data(ofUser),
  'user.updated': data(ofUser),
  'user.deleted': data({ userId: Id }),
  'session.started': data(ofSession),
  'session.ended': data(ofSession),
  'password.changed': data({ userId: Id }),
  'credential.added': data(ofCredential),
  'credential.removed': data(ofCredential),
  'upload.created': data(ofUpload),
  'upload.updated': data(ofUpload),
  'upload.deleted': data(ofUpload),
  'post.created': data(ofPost),
  'post.updated': data(ofPost),
  'post.deleted': data(ofPost),
  'organization.created': data(ofOrganization),
  'organization.updated': data(ofOrganization),
  // Its memberships and invitations end with it.
  'organization.deleted': data(ofOrganization),
  'membership.created': data(ofMembership),
  // Another role is another membership, whose id it has.
  'membership.updated': data(ofMembership),
  'membership.deleted': data(ofMembership),
  'invitation.created': data(ofInvitation),
  'invitation.accepted': data(ofInvitation),
  'invitation.withdrawn': data(ofInvitation),
  // Not for failed logins.
  'audit.created': Type.Object({ entryId, ...ofEntry }),
  'audit.logins-failed': data({
    minute: Type.String({ format: 'date-time', description: 'When the minute began' }),
    network: nullable('An IPv4 address or the /64 of an IPv6 address; null for all that have no event of their own'),
    count: Type.Integer({ description: 'How many logins have failed' }),
    networks: Type.Integer({ description: 'From how many networks' }),
  }),
} satisfies Record<string, TObject>

export type EventName = keyof typeof eventData

export const eventNames = Object.keys(eventData) as EventName[]

/** The names of the events that a webhook gets which names none: not those of the account log, with its addresses. */
export const defaultEventNames: readonly EventName[] = eventNames.filter((name) => !name.startsWith('audit.'))

/** The `data` of an event. */
export type EventData<Name extends EventName> = Static<typeof eventData[Name]>

/** What a webhook receives as its JSON body. */
export const WebhookBody = Type.Union(
  eventNames.map((name) => Type.Object({ type: Type.Literal(name), timestamp: Instant, data: eventData[name] }))
)

/** An event, as handlers get it. */
export type UsherEvent<Name extends EventName = EventName> = {
  [Each in Name]: {
    /** The same in every attempt to deliver it to this consumer. */
    readonly id: string
    readonly type: Each
    /** When it happened, by the clock of the database. */
    readonly timestamp: Date
    /**
     * The id of the user, the post, the upload, the organisation or the entry of the account log. Events of a subject
     * are delivered in order.
     */
    readonly subject: string
    readonly data: EventData<Each>
  }
}[Name]

/** What a handler gets besides the event. */
export interface DeliveryContext {
  /** Aborts when the attempt takes longer than 30 seconds, or the app closes. */
  readonly signal: AbortSignal
  /** 1 in the first attempt. */
  readonly attempt: number
}

/** Handles an event. If it throws or rejects, the event is delivered again later. */
export type EventHandler<Name extends EventName> = (event: UsherEvent<Name>, context: DeliveryContext) => unknown

/** A delivery that was given up. */
export interface FailedDelivery {
  readonly id: string
  readonly consumer: string
  readonly type: EventName
  readonly subject: string
  readonly data: unknown
  readonly timestamp: Date
  readonly attempts: number
  /** The message of the last error, without addresses and tokens. */
  readonly error: string
  readonly failedAt: Date
}
