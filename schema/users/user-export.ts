import { Type, type Static } from '@sinclair/typebox'
import { AuditEntry } from '../audit/audit.ts'
import { ApiKey } from '../sign-in/api-keys.ts'
import { Passkey } from '../sign-in/passkeys.ts'
import { Identity } from '../sign-in/providers.ts'
import { Session } from '../access/sessions.ts'
import { Id, Instant, nullable, optionalInstant } from '../strings/text.ts'
import { UploadLink } from '../uploads/upload-link.ts'
import { UploadRecord } from '../uploads/upload.ts'
import { User } from './users.ts'

const { current, ...sessionMembers } = Session.properties

/** A post of an export. */
const ExportedPost = Type.Object({
  id: Id, title: Type.String(), content: Type.String(), createdAt: Instant, updatedAt: Instant,
})

/** The response of GET /api/users/{id}/export (contract 11.7). It is sent in pieces. */
export const UserExport = Type.Object({
  exportedAt: Instant,
  user: User,
  emailChangedAt: optionalInstant('When the address was changed last; null if it never was'),
  credentials: Type.Object({
    password: Type.Boolean({ description: 'Whether the user has a password' }),
    totp: Type.Unsafe<{ confirmedAt: Date } | null>({
      type: ['object', 'null'],
      properties: { confirmedAt: Instant },
      required: ['confirmedAt'],
      description: 'The authenticator app; null if there is none',
    }),
    recoveryCodesLeft: Type.Integer(),
    passkeys: Type.Array(Passkey),
    identities: Type.Array(Type.Object({
      ...Identity.properties,
      issuer: Type.String({ description: 'Who says who the user is' }),
      subject: Type.String({ description: 'The id of the user there' }),
    })),
    apiKeys: Type.Array(ApiKey),
  }, { description: 'The ways to sign in, without their secrets' }),
  sessions: Type.Array(Type.Object(sessionMembers)),
  networks: Type.Array(
    Type.Object({ network: Type.String(), lastUsedAt: Instant }),
    { description: 'The networks that the user has logged in from' }
  ),
  memberships: Type.Array(Type.Object({
    id: Type.String(), organizationId: Id, organization: Type.String({ description: 'Its name' }), role: Type.String(), createdAt: Instant,
  }), { description: 'Of organisations, the one joined last first' }),
  pending: Type.Object({
    invitations: Type.Array(Type.Object({
      id: Id,
      organizationId: Id,
      organization: Type.String({ description: 'Its name' }),
      email: Type.String(),
      role: Type.String(),
      createdAt: Instant,
      expiresAt: Instant,
    }), { description: 'Invitations to organisations to the address of the user, if it is verified' }),
    links: Type.Array(Type.Object({
      kind: Type.String({ description: '`set-password`, `verify-email`, `undo-change`, `log-in` or `step-up`' }),
      email: nullable('The address that it verifies or restores; null if there is none'),
      createdAt: Instant,
      expiresAt: Instant,
    }), { description: 'Links that were mailed and still work, without their tokens' }),
    mails: Type.Array(Type.Object({
      kind: Type.String({ description: 'The limit that it counts toward, such as `account`' }),
      to: nullable('The recipient; null if it will not be sent'),
      createdAt: Instant,
    }), { description: 'Mails that were not sent yet, without their contents' }),
  }),
  posts: Type.Array(ExportedPost, { description: 'Newest first' }),
  drafts: Type.Optional(Type.Array(Type.Object({
    id: Id, title: Type.String(), content: Type.String(), createdAt: Instant, publishAt: optionalInstant('When it will be published'),
  }), { description: 'Posts that are not published, newest first: only if the user exports them' })),
  uploads: Type.Array(Type.Object({
    ...UploadRecord.properties, links: Type.Array(UploadLink, { description: 'Without their secrets' }),
  }), { description: 'Newest first, without their bytes' }),
  accountLog: Type.Array(AuditEntry, { description: 'The entries about the account, newest first' }),
}, { title: 'UserExport', description: 'Everything that is stored about the user' })

export type UserExport = Static<typeof UserExport>
