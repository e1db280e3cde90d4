import { Type, type Static } from '@sinclair/typebox'

const MIB = 1024 * 1024

const Limit = (defaults: { burst: number, perMinute: number }, description: string) => Type.Object({
  burst: Type.Integer({ default: defaults.burst, minimum: 1, maximum: 1_000_000 }),
  perMinute: Type.Number({ default: defaults.perMinute, minimum: 0.01, maximum: 1_000_000 }),
}, { default: {}, additionalProperties: false, description })

/** The option `throttle`. */
export const ThrottleLimits = Type.Object({
  account: Limit({ burst: 10, perMinute: 1 }, 'Failed logins of an account from networks that are not recognised'),
  consecutiveFailures: Type.Integer({
    default: 100,
    minimum: 1,
    maximum: 1_000_000,
    description:
      'Consecutive failed logins of an account after which it accepts passwords only from recognised networks',
  }),
  address: Limit({ burst: 50, perMinute: 10 }, 'Failed logins from a network'),
  refresh: Limit({ burst: 60, perMinute: 30 }, 'Failed refreshes from a network'),
  reset: Limit(
    { burst: 5, perMinute: 0.2 },
    'Requests for a link to set a password, per network and per address of an account; to verify an address, per user'
  ),
  signUp: Limit({ burst: 5, perMinute: 0.2 }, 'Sign-ups, per network and per mailbox'),
  secondFactor: Limit(
    { burst: 10, perMinute: 0.1 }, 'Wrong codes of the second factor of a user, and of mails to log in to an account'
  ),
  loginMail: Limit(
    { burst: 20, perMinute: 2 }, 'Requests for a mail to log in, per network; for a code to step up, per user'
  ),
  invitation: Limit({ burst: 50, perMinute: 1 }, 'Invitations to organisations, per user who invites, and per network'),
  mail: Limit(
    { burst: 3, perMinute: 0.05 }, 'Mails of a kind to an address that nobody has verified; what exceeds it is not sent'
  ),
  verifiedMail: Limit(
    { burst: 10, perMinute: 0.2 }, 'Mails of a kind to a verified address; what exceeds it is not sent'
  ),
}, {
  default: {},
  additionalProperties: false,
  description: 'Limits of attempts: `burst` at once, and `perMinute` in the long run',
})

/** The option `live`. */
export const LiveLimits = Type.Object({
  connectionsPerNetwork: Type.Integer({
    default: 200,
    minimum: 1,
    maximum: 1_000_000,
    description: 'Sockets and event streams that one network may have open',
  }),
  connections: Type.Integer({
    default: 20_000,
    minimum: 1,
    maximum: 1_000_000,
    description: 'Sockets and event streams of all networks together',
  }),
  subscriptionsPerNetwork: Type.Integer({
    default: 50,
    minimum: 1,
    maximum: 1_000_000,
    description: 'Different subscriptions that one network may run; equal ones count once',
  }),
  subscriptions: Type.Integer({
    default: 2000,
    minimum: 1,
    maximum: 1_000_000,
    description: 'Different subscriptions of all networks together',
  }),
  unreadBytes: Type.Integer({
    default: 128 * MIB,
    minimum: 64 * 1024,
    maximum: 64 * 1024 * MIB,
    description:
      'Unread bytes of all sockets and event streams together; beyond it, those with the most unread bytes are closed',
  }),
  bufferedBytes: Type.Integer({
    default: 32 * MIB,
    minimum: 0,
    maximum: 64 * 1024 * MIB,
    description: 'Bytes of events that are prepared in advance for subscribers, of all subscriptions together',
  }),
  messages: Limit(
    { burst: 250, perMinute: 6000 },
    'Messages and control frames from one socket; a faster socket is slowed down, then closed'
  ),
}, {
  default: {},
  additionalProperties: false,
  description: 'Limits of sockets, event streams and subscriptions of one node',
})

/** The option `graphql`. */
export const GraphqlLimits = Type.Object({
  maxCost: Type.Integer({
    default: 12_500,
    minimum: 1,
    maximum: 10_000_000,
    description: 'Maximum cost of an operation or event: its rows and their fields, estimated from the sizes of pages',
  }),
  maxResponseBytes: Type.Integer({
    default: 8 * MIB,
    minimum: 1024,
    maximum: 256 * MIB,
    description: 'Maximum size of the response to an operation, and of an event, in bytes',
  }),
  bufferedBytes: Type.Integer({
    default: 64 * MIB,
    minimum: 1024,
    maximum: 64 * 1024 * MIB,
    description: 'Bytes of all large responses that are being read or sent',
  }),
  resolverSeconds: Type.Number({
    default: 10,
    minimum: 0.01,
    maximum: 3600,
    description: 'Seconds within which the resolvers of a host must finish, for each operation and event',
  }),
  documents: Limit(
    { burst: 2000, perMinute: 6000 },
    'Estimated milliseconds that it takes to validate and compile the new documents of one network'
  ),
  allDocuments: Limit(
    { burst: 4000, perMinute: 12_000 },
    'Estimated milliseconds that it takes to validate and compile the new documents of all networks together'
  ),
}, { default: {}, additionalProperties: false, description: 'Limits of GraphQL operations on one node' })

/** Limits in the options of a host: each limit is optional, and so is each member of a limit. */
export type GivenLimits<Limits extends typeof ThrottleLimits | typeof LiveLimits | typeof GraphqlLimits> = {
  [Name in keyof Static<Limits>]?: Partly<Static<Limits>[Name]> | undefined
}

// Allows undefined, for hosts that compile with exactOptionalPropertyTypes and pass on values that may be undefined.
type Partly<Value> = Value extends object ? { [Name in keyof Value]?: Value[Name] | undefined } : Value
