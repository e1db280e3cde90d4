import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Options } from '../../schema/options/options.ts'

// Every limit of what clients use, and how it counts them. Whoever adds one has to decide.

/** It counts each of the networks of a client (`networksOf`), and wide ones have a quarter of what all have. */
const NETWORKS = 'networks'
/** It counts users, accounts or what belongs to them, which nobody has more of by changing addresses. */
const OWNERS = 'owners'
/** It counts mailboxes: see `mail-limits.test.ts`. */
const MAILBOXES = 'mailboxes'
/** It bounds what one connection or request does. */
const ONE = 'one'
/** It bounds what all clients share, and a limit of the kind `networks` or `owners` comes before it. */
const BEHIND = 'behind'
/** It bounds the work or the memory of the service itself, whoever causes it. */
const SERVICE = 'service'
type Counts = typeof NETWORKS | typeof OWNERS | typeof MAILBOXES | typeof ONE | typeof BEHIND | typeof SERVICE

/** Options: a new one without an entry does not compile. */
const options: {
  [Group in 'throttle' | 'live' | 'graphql']: { [Name in keyof Options[Group]]: Counts }
} & { uploads: { [Name in Extract<keyof Options, `upload${string}` | `unfinished${string}` | `posts${string}`>]: Counts } } = {
  throttle: {
    account: OWNERS,
    consecutiveFailures: OWNERS,
    address: NETWORKS,
    refresh: NETWORKS,
    reset: NETWORKS,
    signUp: NETWORKS,
    secondFactor: OWNERS,
    loginMail: NETWORKS,
    invitation: NETWORKS,
    mail: MAILBOXES,
    verifiedMail: MAILBOXES,
  },
  live: {
    connectionsPerNetwork: NETWORKS,
    connections: BEHIND,
    subscriptionsPerNetwork: NETWORKS,
    subscriptions: BEHIND,
    // Of those with the most unread bytes, which are closed.
    unreadBytes: BEHIND,
    bufferedBytes: SERVICE,
    messages: ONE,
  },
  graphql: {
    maxCost: ONE,
    maxResponseBytes: ONE,
    bufferedBytes: NETWORKS,
    resolverSeconds: ONE,
    documents: NETWORKS,
    allDocuments: BEHIND,
  },
  uploads: {
    uploadsDir: SERVICE,
    uploadsTo: SERVICE,
    uploadMaxBytes: ONE,
    uploadQuotaBytes: OWNERS,
    uploadQuotaFiles: OWNERS,
    uploadIdleSeconds: ONE,
    uploadMinBytesPerSecond: ONE,
    unfinishedUploadSeconds: ONE,
    unfinishedUploadsPerUser: OWNERS,
    unfinishedUploadsPerNetwork: NETWORKS,
    unfinishedUploads: BEHIND,
    postsPerHour: OWNERS,
  },
}

/** Limits in the code, by file: what counts, waits or remembers. */
const inCode: Readonly<Record<string, Readonly<Record<string, Counts>>>> = {
  'db/mail-links/verification-links.ts': { MAX_TOKENS_PER_USER: OWNERS },
  'db/mail-links/kinds.ts': { MAX_PENDING: NETWORKS },
  'db/sign-in/login-challenges.ts': { MAX_CHALLENGES_PER_USER: OWNERS, MAX_ATTEMPTS_PER_CHALLENGE: ONE },
  'db/sign-in/mails.ts': { MAX_ATTEMPTS_PER_MAIL: ONE, MAX_STEP_UPS_PER_SESSION: OWNERS },
  'db/mail-links/password-links.ts': { MAX_TOKENS_PER_USER: OWNERS },
  'db/mail-links/undo-links.ts': { MAX_TOKENS_PER_USER: OWNERS },
  'db/driver/circuit-breaker.ts': { MAX_WAITING: SERVICE },
  'db/driver/transaction-pool.ts': { MAX_WAITING: SERVICE },
  'db/access/sessions.ts': { MAX_SESSIONS_PER_USER: OWNERS, MAX_NETWORKS_PER_USER: OWNERS },
  'db/uploads/resumable-uploads.ts': { limitOf: NETWORKS },
  'db/uploads/upload-links.ts': { MAX_LINKS_PER_UPLOAD: OWNERS, MAX_LINKS_PER_OWNER: OWNERS },
  'db/users/user-export.ts': { MAX_PENDING: OWNERS },
  'db/audit/audit.ts': { limitOf: NETWORKS },
  'plugins/accounts/update-user.ts': { createInTurn: OWNERS },
  // An export needs a session.
  'plugins/accounts/user-exports.ts': { MAX_EXPORTS: OWNERS, 'fastq.promise': BEHIND },
  // Rejections of those without a session: one entry of the widest network in a minute.
  'plugins/audit/index.ts': { MAX_ENTRIES_PER_DAY: OWNERS, createInTurn: OWNERS, createSampler: NETWORKS },
  'plugins/sign-in/api-keys/verification.ts': { MAX_REMEMBERED: SERVICE },
  'plugins/sign-in/mails.ts': { PENDING_OF_ADDRESS: OWNERS, createAfterResponse: NETWORKS },
  'plugins/mail-links/password-links.ts': { createAfterResponse: NETWORKS },
  // Of a very address, whose links work for who reads its mailbox.
  'plugins/mail-links/sign-ups.ts': { PENDING_OF_RECIPIENT: OWNERS, createAfterResponse: NETWORKS },
  // Logins are charged to their networks before, and those that wait take a thread less than a second.
  'plugins/sign-in/passkeys/verifier.ts': { MAX_PENDING: BEHIND },
  'plugins/sign-in/passwords/breached.ts': { MAX_WAITING: NETWORKS, 'new FairQueue': NETWORKS, createSampler: SERVICE },
  'plugins/sign-in/passwords/passwords.ts': { WAITING: NETWORKS, 'new FairQueue': NETWORKS },
  // Beyond it, a rejection is not delayed.
  'plugins/throttle/tarpit.ts': { MAX_WAITING: SERVICE },
  'plugins/throttle/throttle.ts': {
    ROWS: SERVICE,
    createRecentRejections: SERVICE,
    'createNetworkLimit LOGIN_OF_NETWORK': NETWORKS,
    'createNetworkLimit refresh.address': NETWORKS,
    'createNetworkLimit reset.address': NETWORKS,
    'createNetworkLimit sign-up.address': NETWORKS,
    'createNetworkLimit login-mail.address': NETWORKS,
    'createNetworkLimit invitation.address': NETWORKS,
    'createLimit LOGIN_OF_ACCOUNT': OWNERS,
    'createLimit LOGIN_OF_ACCOUNT_AND_NETWORK': OWNERS,
    'createLimit SECOND_FACTOR_OF_ACCOUNT': OWNERS,
    'createLimit MAIL_CODE_OF_ACCOUNT': OWNERS,
    'createLimit mail-code.account-and-address': OWNERS,
    'createLimit reset.account': OWNERS,
    'createLimit verification.user': OWNERS,
    'createLimit sign-up.mailbox': MAILBOXES,
    'createLimit login-mail.user': OWNERS,
    'createLimit invitation.user': OWNERS,
  },
  'plugins/database/database.ts': { createSampler: SERVICE },
  'plugins/http/errors.ts': { createSampler: SERVICE },
  'plugins/http/preflight.ts': { createSampler: SERVICE },
  'plugins/http/raw/pipelining.ts': { WAITING: ONE },
  'plugins/idempotency/index.ts': { 'new TokenBuckets': OWNERS },
  'plugins/outbox/mails/mailer.ts': { RECIPIENTS: SERVICE, createSampler: OWNERS },
  'plugins/outbox/outbox.ts': {
    HANDLER_SLOTS: SERVICE,
    WEBHOOK_SLOTS: SERVICE,
    MAX_EVENTS_PER_USER: OWNERS,
    MAX_EVENTS_PER_CONSUMER: BEHIND,
    createSampler: SERVICE,
  },
  'plugins/posts/posts.ts': { createRecentRejections: OWNERS },
  'plugins/streams/connections.ts': { 'new ClientQuota': NETWORKS },
  'plugins/support/client-quota.ts': { limitOf: NETWORKS },
  'plugins/support/after-response.ts': { WAITING: NETWORKS, 'new FairQueue': NETWORKS },
  // Uploads that have been charged to their networks.
  'plugins/uploads/scanner.ts': { MAX_WAITING: BEHIND, 'new FairQueue': OWNERS },
  'plugins/uploads/s3/requests.ts': { MAX_DOWNLOADS: BEHIND, MAX_OTHERS: SERVICE },
  'plugins/uploads/storage.ts': { 'new ClientQuota': NETWORKS },
  'routes/graphql/limits/document-budget.ts': {
    'new TokenBuckets': NETWORKS, 'new TokenBucket': BEHIND, limitOf: NETWORKS,
  },
  'routes/graphql/limits/limits.ts': {
    'new OperationQueue': NETWORKS, 'new ResultBudget': NETWORKS, 'new DocumentBudget': NETWORKS,
  },
  'routes/graphql/limits/result-budget.ts': { 'new BytePool': BEHIND },
  'routes/graphql/live/message-rate.ts': { 'new TokenBucket': ONE },
  'routes/graphql/live/subscriptions.ts': { 'new ClientQuota': NETWORKS, 'new BytePool': SERVICE },
  'routes/graphql/live/ws/graphql-socket.ts': { MAX_OPERATIONS_PER_SOCKET: ONE, MESSAGES_WAITING: ONE },
  'schema/sign-in/api-keys.ts': { MAX_API_KEYS_PER_USER: OWNERS },
  'schema/sign-in/passkeys.ts': { MAX_PASSKEYS_PER_USER: OWNERS },
  'schema/sign-in/providers.ts': { MAX_IDENTITIES_PER_USER: OWNERS },
}

/** Where only one of the networks of a client is looked at, and why that is no limit of networks. */
const oneNetwork: Readonly<Record<string, string>> = {
  'db/access/sessions.ts networkOf': 'recognised networks, which widen what somebody may do',
  'db/audit/failed-logins.ts networkOf': 'counts for events, which limit nothing',
  'plugins/accounts/accounts.ts networkOf': 'the recognised network that remains after a repair',
  'plugins/sign-in/credentials.ts networkOf': 'the recognised network that remains after a repair',
  'plugins/sign-in/mails.ts networkOf': 'a recognised network has a limit of its own',
  'plugins/throttle/throttle.ts networkOf': 'a recognised network has a limit of its own',
  'plugins/audit/index.ts widestNetworkOf': 'the narrower ones have no entries of their own',
}

const root = fileURLToPath(new URL('../..', import.meta.url))
const files = globSync(['db/**/*.ts', 'plugins/**/*.ts', 'routes/**/*.ts', 'schema/**/*.ts'], { cwd: root })
  // These implement limits.
  .filter((file) => !/^plugins\/support\/(in-turn|recent-rejections|sampler|token-bucket|fair-queue)\.ts$/.test(file))
  .sort()
const read = (file: string) => readFileSync(join(root, file), 'utf8')

const LIMITS = new RegExp([
  String.raw`\b(?<made>new (?:FairQueue|OperationQueue|ClientQuota|TokenBuckets?|BytePool|ResultBudget|DocumentBudget))\(`,
  String.raw`(?<!function )\b(?<called>createInTurn|createSampler|createRecentRejections|createAfterResponse|fastq\.promise)\(`,
  String.raw`\b(?<named>create(?:Network)?Limit)\(\s*'?(?<name>[\w.-]+)'?,`,
  String.raw`\bconst (?<constant>MAX_\w+_PER_(?:USER|OWNER|UPLOAD|SESSION|SOCKET|CHALLENGE|MAIL|DAY|CONSUMER)` +
  String.raw`|MAX_(?:PENDING\w*|WAITING|DOWNLOADS|OTHERS|EXPORTS|KEYS|REMEMBERED)|PENDING\w*|\w*WAITING|\w+_SLOTS|ROWS|RECIPIENTS)\b`,
  String.raw`[^.\w](?<share>limitOf)\(\w+, (?:limits|this|perNetwork)`,
].join('|'), 'g')

t.test('4 every limit in the code counts networks, or there is a reason', async (t) => {
  const found = Object.fromEntries(files.flatMap((file) => {
    const names = [...read(file).matchAll(LIMITS)].map(({ groups }) => {
      const { made, called, named, name, constant, share } = groups!
      return made ?? called ?? constant ?? share ?? `${named} ${name}`
    })
    return names.length === 0 ? [] : [[file, [...new Set(names)].sort()]]
  }))
  t.strictSame(found, Object.fromEntries(Object.entries(inCode)
    .map(([file, limits]) => [file, Object.keys(limits).sort()])
    .sort(([one], [other]) => one! < other! ? -1 : 1)))
})

t.test('4 every option that limits networks has its place in the code', (t) => {
  const counting = files.filter((file) => /\b(?:networksOf|createNetworkLimit|ClientQuota|clientNetworksOf|limitOf)\b/.test(read(file)))
  for (const group of Object.values(options)) {
    for (const [option, counts] of Object.entries(group)) {
      if (counts !== NETWORKS) continue
      const name = new RegExp(String.raw`\b${option}\b`)
      t.ok(counting.some((file) => name.test(read(file))), option)
    }
  }
  t.end()
})

t.test('4 no limit looks at one network of a client only', (t) => {
  const found = files.flatMap((file) => file === 'schema/http/network.ts'
    ? []
    : [...new Set([...read(file).matchAll(/\b(networkOf|widestNetworkOf)\(/g)].map(([, name]) => `${file} ${name}`))])
  t.strictSame(found.sort(), Object.keys(oneNetwork).sort())
  t.end()
})
