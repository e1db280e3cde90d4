import t from 'tap'
import { maskSetting } from '../../node/settings/masked.ts'
import { requireNode } from '../../schema/runtime/require-node.ts'
import { warnOfNames } from '../../node/settings/names.ts'
import { explainPasswordMemory } from '../../node/process/password-memory.ts'
import { serviceOptions } from '../../node/settings/service-options.ts'
import { providersOf, warnOfProviderSettings } from '../../node/settings/providers.ts'
import { checkSettings, parseSettings, settingNames } from '../../node/settings/settings.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import { failStart, runCommand } from '../helpers/command.ts'

t.test('16.5 settings name providers, and what is wrong with them is said by their names', async (t) => {
  const PUBLIC_URL = 'https://example.com'
  const of = (settings: Record<string, string>) => providersOf(parseSettings({ PUBLIC_URL, ...settings }))
  t.equal(of({}), undefined)
  t.strictSame(of({ PROVIDER_GITHUB_CLIENT_ID: 'usher', PROVIDER_GITHUB_CLIENT_SECRET: 'a secret' }), {
    github: { clientId: 'usher', clientSecret: 'a secret' },
  }, 'continue with GitHub')
  t.strictSame(of({
    PROVIDER_MY_COMPANY_ISSUER: 'http://id.internal',
    PROVIDER_MY_COMPANY_CLIENT_ID: 'usher',
    PROVIDER_MY_COMPANY_SCOPES: 'openid, email',
    PROVIDER_MY_COMPANY_NAME: 'My company',
    PROVIDER_MY_COMPANY_TRUST_EMAIL: 'true',
    PROVIDER_MY_COMPANY_SIGN_UP: 'false',
    PROVIDER_MY_COMPANY_ALLOW_PRIVATE: 'true',
  }), {
    'my-company': {
      issuer: 'http://id.internal',
      clientId: 'usher',
      scopes: ['openid', 'email'],
      name: 'My company',
      trustEmail: true,
      signUp: false,
      allowPrivateAddresses: true,
    },
  })
  const secret = 'a secret that nobody sees'
  const wrong: [Record<string, string>, string][] = [
    [{ PROVIDER_GITHUB_CLIENT_SECRET: secret }, 'PROVIDER_GITHUB_CLIENT_ID is required.'],
    [{ PROVIDER_ACME_CLIENT_ID: 'usher', PROVIDER_ACME_CLIENT_SECRET: secret }, 'PROVIDER_ACME_ISSUER is required.'],
    [
      { PROVIDER_ACME_CLIENT_ID: 'usher', PROVIDER_ACME_ISSUER: 'https://id.example', PROVIDER_ACME_TRUST_EMAIL: 'yes' },
      'PROVIDER_ACME_TRUST_EMAIL must be true or false.',
    ],
    [{ PROVIDER_ACME_CLIENT_ID: 'usher', PUBLIC_URL: '' }, 'PUBLIC_URL is required with PROVIDER_ACME_CLIENT_ID.'],
  ]
  for (const [settings, message] of wrong) t.throws(() => of(settings), { message }, message)
  t.strictSame(warnOfProviderSettings({ PROVIDER_GITHUB_CLIENTID: 'usher', PROVIDER_GITHUB_CLIENT_ID: 'usher' }).length, 1)
  t.equal(maskSetting('PROVIDER_GITHUB_CLIENT_SECRET', secret), '********')
})

t.test('8 settings: each has a default or is optional', async (t) => {
  t.same(parseSettings({}), {
    given: [],
    HOST: '127.0.0.1',
    PORT: 3000,
    DATABASE_WAIT_SECONDS: 60,
    DEADLINE_FACTOR: 1,
    DATA_DIR: './data',
    CONSOLE: true,
    LOG_LEVEL: 'info',
    ACCESS_LOG: 0,
    CORS_ORIGIN: [],
    REPLICA_URLS: [],
    TRUST_PROXY: [],
    USERS_VISIBLE_TO: 'anyone',
    POSTS_VISIBLE_TO: 'anyone',
    EMAILS_VISIBLE_TO: 'anyone',
    UPLOADS_VISIBLE_TO: 'anyone',
    NODE_ENV: 'development',
    PRODUCT_NAME: 'Usher',
    UPLOAD_MAX_BYTES: 10485760,
    S3_REGION: 'us-east-1',
    S3_REDIRECT_SECONDS: 0,
    SCAN_SECONDS: 30,
    UPLOAD_QUOTA_BYTES: 1073741824,
    UPLOAD_QUOTA_FILES: 10000,
    POSTS_PER_HOUR: 10000,
    WORKERS: 1,
    METRICS_HOST: '127.0.0.1',
    TOKEN_ISSUER: 'usher',
    ACCESS_TOKEN_SECONDS: 900,
    STEP_UP_SECONDS: 600,
    SECOND_FACTOR: 'optional',
    SESSION_SECONDS: 7776000,
    SESSION_IDLE_SECONDS: 2592000,
    SIGNING_KEY_SECONDS: 2592000,
    PASSWORD_TOKEN_SECONDS: 1800,
    AUDIT_SECONDS: 31536000,
    PASSWORD_HASH_MEMORY_KIB: 19456,
    PASSWORD_HASH_PASSES: 2,
    THROTTLE_ACCOUNT_BURST: 10,
    THROTTLE_ACCOUNT_PER_MINUTE: 1,
    THROTTLE_CONSECUTIVE_FAILURES: 100,
    THROTTLE_ADDRESS_BURST: 50,
    THROTTLE_ADDRESS_PER_MINUTE: 10,
    THROTTLE_REFRESH_BURST: 60,
    THROTTLE_REFRESH_PER_MINUTE: 30,
    THROTTLE_RESET_BURST: 5,
    THROTTLE_RESET_PER_MINUTE: 0.2,
    THROTTLE_SECOND_FACTOR_BURST: 10,
    THROTTLE_SECOND_FACTOR_PER_MINUTE: 0.1,
    THROTTLE_SIGN_UP_BURST: 5,
    THROTTLE_SIGN_UP_PER_MINUTE: 0.2,
    THROTTLE_LOGIN_MAIL_BURST: 20,
    THROTTLE_LOGIN_MAIL_PER_MINUTE: 2,
    THROTTLE_MAIL_BURST: 3,
    THROTTLE_MAIL_PER_MINUTE: 0.05,
    THROTTLE_VERIFIED_MAIL_BURST: 10,
    THROTTLE_VERIFIED_MAIL_PER_MINUTE: 0.2,
    LIVE_CONNECTIONS_PER_NETWORK: 200,
    LIVE_CONNECTIONS: 20000,
    LIVE_SUBSCRIPTIONS_PER_NETWORK: 50,
    LIVE_SUBSCRIPTIONS: 2000,
  })
})

t.test('13.3 settings of an S3 need each other, and an error names the setting without its value', async (t) => {
  const all = {
    S3_ENDPOINT: 'https://s3.example.com', S3_BUCKET: 'photos', S3_ACCESS_KEY_ID: 'KEY', S3_SECRET_ACCESS_KEY: 'hidden',
  }
  for (const name of Object.keys(all)) {
    const { errors } = checkSettings({ ...all, [name]: '' })
    t.match(errors, [new RegExp(`^${name} is required with S3_`)])
  }
  t.match(checkSettings({ UPLOADS_TO: 's3' }).errors[0], 'S3_ENDPOINT is required with UPLOADS_TO s3.')
  const wrong = {
    S3_ENDPOINT: 'https://user:hidden@s3.example.com',
    S3_BUCKET: 'a/hidden',
    S3_PREFIX: '../hidden',
    S3_PATH_STYLE: 'hidden',
    S3_SECRET_ACCESS_KEY: 'is hidden',
    S3_REDIRECT_SECONDS: '61',
    UPLOADS_TO: 'hidden',
  }
  for (const [name, value] of Object.entries(wrong)) {
    const { errors } = checkSettings({ ...all, [name]: value })
    t.equal(errors.length, 1, name)
    t.match(errors[0], new RegExp(`^${name} must be`))
    t.notMatch(errors[0], 'hidden')
  }
})

t.test('8 settings: an empty variable counts as absent, and an unknown one is ignored', async (t) => {
  t.same(
    parseSettings({ PORT: '', HOST: '', DATABASE_URL: '', CORS_ORIGIN: '', HOME: '/root', port: '9' }),
    parseSettings({})
  )
})

t.test('8 settings: all are read from the environment', async (t) => {
  const { given, ...settings } = parseSettings({
    HOST: '0.0.0.0',
    PORT: '0',
    DATABASE_WAIT_SECONDS: '5',
    DEADLINE_FACTOR: '3',
    DATABASE_URL: 'postgresql://usher:secret@one:5432,two:5433/usher?sslmode=require',
    NOTIFICATIONS_URL: 'postgres://usher:secret@one:5432/usher',
    REPLICA_URLS: 'postgres://usher:secret@two:5432/usher, postgres://usher:secret@three/usher',
    DATA_DIR: '/var/lib/usher',
    PUBLIC_URL: 'https://api.example.com/accounts',
    ADMIN_EMAIL: 'root@example.com',
    ADMIN_PASSWORD: 'horse battery staple',
    LOG_LEVEL: 'trace',
    ACCESS_LOG: '0.5',
    SLOW_STATEMENT_MS: '200',
    CORS_ORIGIN: 'https://app.example.com, http://localhost:8080',
    TRUST_PROXY: 'loopback, 10.0.0.0/8,2001:db8::/32, ::1',
    SECRET: 'correct horse battery',
    SMTP_URL: 'smtps://user:secret@mail.example.com:465/?pool=true',
    MAIL_FROM: 'Usher <usher@example.com>',
    PASSWORD_URL: 'https://app.example.com/password?set=1',
    SIGN_UP: 'true',
    LOGIN_MAIL: 'true',
    CONSOLE: 'false',
    MAIL_TEMPLATES: './mails',
    PRODUCT_NAME: 'Notes & More',
    PRODUCT_COLOR: '#0a7',
    PRODUCT_LOGO: '/logo.svg',
    APP_URL: 'https://app.example.com/notes?from=login',
    TERMS_URL: 'https://example.com/terms',
    PRIVACY_URL: '/privacy',
    PRINT_SECRETS: 'true',
    WEBHOOK_URL: 'https://example.com/events',
    WEBHOOK_SECRET: `whsec_${'a'.repeat(32)}, whsec_${'b'.repeat(32)}`,
    WEBHOOK_EVENTS: 'user.created,post.deleted',
    WEBHOOK_ALLOW_PRIVATE: 'false',
    USERS_VISIBLE_TO: 'members',
    POSTS_VISIBLE_TO: 'members',
    EMAILS_VISIBLE_TO: 'owners',
    UPLOADS_VISIBLE_TO: 'owners',
    NODE_ENV: 'production',
    UPLOAD_MAX_BYTES: '1073741824',
    S3_ENDPOINT: 'https://s3.example.com',
    S3_BUCKET: 'photos',
    S3_REGION: 'eu-west-3',
    S3_ACCESS_KEY_ID: 'KEY',
    S3_SECRET_ACCESS_KEY: 'secret/+',
    S3_PREFIX: 'usher/uploads',
    S3_PATH_STYLE: 'false',
    S3_REDIRECT_SECONDS: '60',
    CLAMD: '/run/clamav/clamd.ctl',
    SCAN_SECONDS: '0.5',
    UPLOADS_TO: 'folder',
    UPLOAD_QUOTA_BYTES: '0',
    UPLOAD_QUOTA_FILES: '5',
    POSTS_PER_HOUR: '7',
    WORKERS: 'auto',
    CONFIG: 'mine.ts',
    METRICS_PORT: '9464',
    METRICS_HOST: '0.0.0.0',
    SIGNING_ALGORITHM: 'ES256',
    TOKEN_ISSUER: 'https://api.example.com',
    ACCESS_TOKEN_SECONDS: '300',
    STEP_UP_SECONDS: '120',
    SECOND_FACTOR: 'admins',
    SESSION_SECONDS: '86400',
    SESSION_IDLE_SECONDS: '3600',
    SIGNING_KEY_SECONDS: '86400',
    PASSWORD_TOKEN_SECONDS: '600',
    AUDIT_SECONDS: '86400',
    PASSWORD_HASH_MEMORY_KIB: '65536',
    PASSWORD_HASH_PASSES: '3',
    POOL_SIZE: '20',
    THROTTLE_ACCOUNT_BURST: '2',
    THROTTLE_ACCOUNT_PER_MINUTE: '2.5',
    THROTTLE_CONSECUTIVE_FAILURES: '4',
    THROTTLE_ADDRESS_BURST: '5',
    THROTTLE_ADDRESS_PER_MINUTE: '5.5',
    THROTTLE_REFRESH_BURST: '7',
    THROTTLE_REFRESH_PER_MINUTE: '7.5',
    THROTTLE_RESET_BURST: '9',
    THROTTLE_RESET_PER_MINUTE: '9.5',
    THROTTLE_SECOND_FACTOR_BURST: '12',
    THROTTLE_SECOND_FACTOR_PER_MINUTE: '0.5',
    FORMER_SECRET: 'the secret from before',
    THROTTLE_SIGN_UP_BURST: '11',
    THROTTLE_SIGN_UP_PER_MINUTE: '11.5',
    THROTTLE_LOGIN_MAIL_BURST: '12',
    THROTTLE_LOGIN_MAIL_PER_MINUTE: '12.5',
    THROTTLE_MAIL_BURST: '13',
    THROTTLE_MAIL_PER_MINUTE: '13.5',
    THROTTLE_VERIFIED_MAIL_BURST: '15',
    THROTTLE_VERIFIED_MAIL_PER_MINUTE: '15.5',
    LIVE_CONNECTIONS_PER_NETWORK: '3',
    LIVE_CONNECTIONS: '18',
    LIVE_SUBSCRIPTIONS_PER_NETWORK: '19',
    LIVE_SUBSCRIPTIONS: '20',
  })
  t.ok(given!.length > 80, 'all of them are given')
  t.same(settings, {
    HOST: '0.0.0.0',
    PORT: 0,
    DATABASE_WAIT_SECONDS: 5,
    DEADLINE_FACTOR: 3,
    DATABASE_URL: 'postgresql://usher:secret@one:5432,two:5433/usher?sslmode=require',
    NOTIFICATIONS_URL: 'postgres://usher:secret@one:5432/usher',
    REPLICA_URLS: ['postgres://usher:secret@two:5432/usher', 'postgres://usher:secret@three/usher'],
    DATA_DIR: '/var/lib/usher',
    PUBLIC_URL: 'https://api.example.com/accounts',
    ADMIN_EMAIL: 'root@example.com',
    ADMIN_PASSWORD: 'horse battery staple',
    LOG_LEVEL: 'trace',
    ACCESS_LOG: 0.5,
    SLOW_STATEMENT_MS: 200,
    CORS_ORIGIN: ['https://app.example.com', 'http://localhost:8080'],
    TRUST_PROXY: ['loopback', '10.0.0.0/8', '2001:db8::/32', '::1'],
    SECRET: 'correct horse battery',
    SMTP_URL: 'smtps://user:secret@mail.example.com:465/?pool=true',
    MAIL_FROM: 'Usher <usher@example.com>',
    PASSWORD_URL: 'https://app.example.com/password?set=1',
    SIGN_UP: true,
    LOGIN_MAIL: true,
    CONSOLE: false,
    MAIL_TEMPLATES: './mails',
    PRODUCT_NAME: 'Notes & More',
    PRODUCT_COLOR: '#0a7',
    PRODUCT_LOGO: '/logo.svg',
    APP_URL: 'https://app.example.com/notes?from=login',
    TERMS_URL: 'https://example.com/terms',
    PRIVACY_URL: '/privacy',
    PRINT_SECRETS: true,
    WEBHOOK_URL: 'https://example.com/events',
    WEBHOOK_SECRET: [`whsec_${'a'.repeat(32)}`, `whsec_${'b'.repeat(32)}`],
    WEBHOOK_EVENTS: ['user.created', 'post.deleted'],
    WEBHOOK_ALLOW_PRIVATE: false,
    USERS_VISIBLE_TO: 'members',
    POSTS_VISIBLE_TO: 'members',
    EMAILS_VISIBLE_TO: 'owners',
    UPLOADS_VISIBLE_TO: 'owners',
    NODE_ENV: 'production',
    UPLOAD_MAX_BYTES: 1073741824,
    S3_ENDPOINT: 'https://s3.example.com',
    S3_BUCKET: 'photos',
    S3_REGION: 'eu-west-3',
    S3_ACCESS_KEY_ID: 'KEY',
    S3_SECRET_ACCESS_KEY: 'secret/+',
    S3_PREFIX: 'usher/uploads',
    S3_PATH_STYLE: false,
    S3_REDIRECT_SECONDS: 60,
    CLAMD: '/run/clamav/clamd.ctl',
    SCAN_SECONDS: 0.5,
    UPLOADS_TO: 'folder',
    UPLOAD_QUOTA_BYTES: 0,
    UPLOAD_QUOTA_FILES: 5,
    POSTS_PER_HOUR: 7,
    CONFIG: 'mine.ts',
    WORKERS: 'auto',
    METRICS_PORT: 9464,
    METRICS_HOST: '0.0.0.0',
    SIGNING_ALGORITHM: 'ES256',
    TOKEN_ISSUER: 'https://api.example.com',
    ACCESS_TOKEN_SECONDS: 300,
    STEP_UP_SECONDS: 120,
    SECOND_FACTOR: 'admins',
    SESSION_SECONDS: 86400,
    SESSION_IDLE_SECONDS: 3600,
    SIGNING_KEY_SECONDS: 86400,
    PASSWORD_TOKEN_SECONDS: 600,
    AUDIT_SECONDS: 86400,
    PASSWORD_HASH_MEMORY_KIB: 65536,
    PASSWORD_HASH_PASSES: 3,
    POOL_SIZE: 20,
    THROTTLE_ACCOUNT_BURST: 2,
    THROTTLE_ACCOUNT_PER_MINUTE: 2.5,
    THROTTLE_CONSECUTIVE_FAILURES: 4,
    THROTTLE_ADDRESS_BURST: 5,
    THROTTLE_ADDRESS_PER_MINUTE: 5.5,
    THROTTLE_REFRESH_BURST: 7,
    THROTTLE_REFRESH_PER_MINUTE: 7.5,
    THROTTLE_RESET_BURST: 9,
    THROTTLE_RESET_PER_MINUTE: 9.5,
    THROTTLE_SECOND_FACTOR_BURST: 12,
    THROTTLE_SECOND_FACTOR_PER_MINUTE: 0.5,
    FORMER_SECRET: 'the secret from before',
    THROTTLE_SIGN_UP_BURST: 11,
    THROTTLE_SIGN_UP_PER_MINUTE: 11.5,
    THROTTLE_LOGIN_MAIL_BURST: 12,
    THROTTLE_LOGIN_MAIL_PER_MINUTE: 12.5,
    THROTTLE_MAIL_BURST: 13,
    THROTTLE_MAIL_PER_MINUTE: 13.5,
    THROTTLE_VERIFIED_MAIL_BURST: 15,
    THROTTLE_VERIFIED_MAIL_PER_MINUTE: 15.5,
    LIVE_CONNECTIONS_PER_NETWORK: 3,
    LIVE_CONNECTIONS: 18,
    LIVE_SUBSCRIPTIONS_PER_NETWORK: 19,
    LIVE_SUBSCRIPTIONS: 20,
  })
})

t.test('8 settings: a URL of a database may have several hosts, options and a percent-encoded password; two ports of 0 do not collide', async (t) => {
  const urls = ['p%40ss%2Fword%25', 'p@ss', 'p,w']
    .map((password) => `postgres://usher:${password}@[::1]:5432/usher?host=/var/run&sslmode=require`)
  for (const DATABASE_URL of [...urls, 'postgres://one:1,two:2/usher?user=me', 'postgresql:///usher']) {
    t.match(parseSettings({ DATABASE_URL }), { DATABASE_URL })
  }
  t.match(parseSettings({ PORT: '0', METRICS_PORT: '0' }), { PORT: 0, METRICS_PORT: 0 })
})

t.test('8 settings: a shorter session, or fewer sockets, needs no other setting', async (t) => {
  t.match(parseSettings({ SESSION_SECONDS: '600' }), { SESSION_SECONDS: 600, ACCESS_TOKEN_SECONDS: 900 })
  t.match(parseSettings({ LIVE_CONNECTIONS: '10' }), { LIVE_CONNECTIONS_PER_NETWORK: 200 })
  t.match(parseSettings({ PASSWORD_HASH_MEMORY_KIB: '7168', PASSWORD_HASH_PASSES: '5' }), { PASSWORD_HASH_PASSES: 5 })
  t.match(parseSettings({ POOL_SIZE: '1000', DATABASE_URL: 'postgres://h/d' }), { POOL_SIZE: 1000 })
})

t.test('8 settings: the options of the plugin have the same defaults, and its limits accept what settings accept', async (t) => {
  const ofSettings = (settings: Record<string, string>) =>
    readOptions({ ...serviceOptions(parseSettings(settings)), databaseUrl: 'postgres://h/d' })
  t.same(ofSettings({}), readOptions({ databaseUrl: 'postgres://h/d' }))
  const options =
    ofSettings({ THROTTLE_VERIFIED_MAIL_BURST: '7', SESSION_SECONDS: '34560000', SIGNING_ALGORITHM: 'ES256' })
  t.match(options, {
    throttle: { verifiedMail: { burst: 7, perMinute: 0.2 } }, sessionSeconds: 34560000, signingAlgorithm: 'ES256',
  })
})

t.test('8 settings: hashes that would take more than half of the memory are refused', async (t) => {
  const GIB = 1024 ** 3
  const settings = (kib: number) =>
    parseSettings({ PASSWORD_HASH_MEMORY_KIB: `${kib}`, PASSWORD_HASH_PASSES: '1', WORKERS: '256' })
  t.match(explainPasswordMemory(settings(1024 * 1024), 4 * GIB),
    /^PASSWORD_HASH_MEMORY_KIB 1048576 takes \d+ MiB for \d+ hashes at once, more than half of the 4096 MiB of memory: set at most \d+\.$/)
  t.equal(explainPasswordMemory(settings(1024 * 1024), 1024 ** 3 * GIB), undefined)
  t.equal(
    explainPasswordMemory(parseSettings({ WORKERS: '256' }), GIB), undefined, 'the recommended cost is never refused'
  )
})

const port = 'PORT must be a whole number from 0 (any free port) to 65535.'
const database = 'DATABASE_URL must be an address such as postgres://user:password@host:5432/database.'
const replicas = 'REPLICA_URLS must be a comma-separated list of addresses of standbys such as ' +
  'postgres://user:password@host:5432/database.'
const encoding = 'Characters such as / # ? % @ in the password must be percent-encoded (/ is %2F).'
const site =
  'PUBLIC_URL must be an address such as https://api.example.com, ' +
  'or https://example.com/accounts if a proxy removes the path.'
const email = 'ADMIN_EMAIL must be an email address of at most 254 characters.'
const password = 'ADMIN_PASSWORD must be a password of 8 to 256 characters.'
const level = 'LOG_LEVEL must be one of fatal, error, warn, info, debug, trace and silent.'
const origin = 'CORS_ORIGIN must be a comma-separated list of origins such as https://app.example.com or ' +
  'capacitor://localhost, without wildcards, or only * for any.'
const proxy = 'TRUST_PROXY must be true, false, or a comma-separated list of addresses and ranges such as 10.0.0.0/8.'
const secret = 'SECRET must be a secret of 16 to 1024 characters.'
const smtp = 'SMTP_URL must be an address such as smtps://user:password@mail.example.com.'
const from = 'MAIL_FROM must be an email address, or one with a name such as Usher <usher@example.com>.'
const name = 'PRODUCT_NAME must be a name of up to 100 characters.'
const logo = 'PRODUCT_LOGO must be the path of an image on the same origin, such as /logo.svg.'
const app = 'APP_URL must be a path or an address such as https://app.example.com.'
const productColor = 'PRODUCT_COLOR must be a color such as #1d4ed8.'
const page = 'PASSWORD_URL must be an address without a fragment, such as https://app.example.com/set-password.'
const cost = (found: string) =>
  'PASSWORD_HASH_MEMORY_KIB times PASSWORD_HASH_PASSES must be from 35840 to 1048576, such as ' +
    `19456 times 2, not ${found}.`
const embedded = (found: string) => `POOL_SIZE ${found} connections, and the embedded PostgreSQL has 1000 at most: ` +
  'set a smaller POOL_SIZE or fewer WORKERS.'
const PUBLIC_URL = 'https://api.example.com'
const WEBHOOK_SECRET = `whsec_${'a'.repeat(32)}`
const users = 'USERS_VISIBLE_TO must be anyone or members (everyone with a token).'
const bytes = 'UPLOAD_MAX_BYTES must be a whole number of bytes, at least 1.'

t.test('8 settings: MAIL_FROM may be an address without a name, and SMTP_URL needs PUBLIC_URL or PASSWORD_URL', async (t) => {
  const mail = { SMTP_URL: 'smtp://127.0.0.1:1025', MAIL_FROM: 'usher@example.com' }
  t.match(parseSettings({ ...mail, PUBLIC_URL: 'https://api.example.com' }), mail)
  t.match(parseSettings({ ...mail, PASSWORD_URL: 'https://app.example.com' }), mail)
})

// A sentence repeats a value that is a number, because that is no secret.
const not = (sentence: string, value: string) => sentence.replace(/\.$/, `, not ${value}.`)

const bad: [setting: Record<string, string>, sentence: string][] = [
  [{ PORT: 'http' }, port],
  [{ PORT: '-1' }, not(port, '-1')],
  [{ PORT: '65536' }, not(port, '65536')],
  [{ PORT: '80.5' }, not(port, '80.5')],
  [{ PRINT_SECRETS: 'yes' }, 'PRINT_SECRETS must be true or false.'],
  [{ SIGN_UP: 'yes' }, 'SIGN_UP must be true or false.'],
  [{ SIGN_UP: 'true', PUBLIC_URL: 'https://api.example.com' }, 'SMTP_URL is required with SIGN_UP.'],
  [{ LOGIN_MAIL: 'true', PUBLIC_URL: 'https://api.example.com' }, 'SMTP_URL is required with LOGIN_MAIL.'],
  [
    { SIGN_UP: 'true', SMTP_URL: 'smtp://h', MAIL_FROM: 'a@example.com', PASSWORD_URL: 'https://app.example.com/' },
    'PUBLIC_URL is required with SIGN_UP.',
  ],
  [{ DATABASE_URL: 'mysql://u:secret@h/d' }, database],
  [{ DATABASE_URL: 'localhost' }, database],
  [{ DATABASE_URL: 'postgres://u:secret@h:port/d' }, database],
  ...[
    'p@ss/word', '12/ab', 'q/8Zk+3==', 'pa#ss', '12#ss', 'pa?ss', '12?ss', '12?a=ss', 'pa%ss', '%zz', 'p@s,s', '/',
    '@/',
  ]
    .map((password): typeof bad[number] =>
      [{ DATABASE_URL: `postgres://usher:${password}@127.0.0.1:5477/usher` }, `${database} ${encoding}`]),
  [
    { NOTIFICATIONS_URL: 'postgres://u:p/w@h/d', DATABASE_URL: 'postgres://h/d' },
    `${database.replace('DATABASE', 'NOTIFICATIONS')} ${encoding}`,
  ],
  [{ PORT: '3000', METRICS_PORT: '3000' }, 'PORT and METRICS_PORT must differ.'],
  [{ METRICS_PORT: '3000' }, 'PORT and METRICS_PORT must differ.'],
  [{ PUBLIC_URL: 'api.example.com' }, site],
  [{ PUBLIC_URL: 'ftp://api.example.com' }, site],
  [{ PUBLIC_URL: 'https://api.example.com/?x' }, site],
  [{ PUBLIC_URL: 'https://' }, site],
  [{ PUBLIC_URL: 'https://example.com/a;b' }, site],
  [{ ADMIN_EMAIL: 'root', ADMIN_PASSWORD: 'horse battery staple' }, email],
  [{ ADMIN_EMAIL: 'root@example.com', ADMIN_PASSWORD: 'short' }, password],
  [{ ADMIN_EMAIL: 'root@example.com' }, 'ADMIN_PASSWORD is required with ADMIN_EMAIL.'],
  [{ ADMIN_PASSWORD: 'horse battery staple' }, 'ADMIN_EMAIL is required with ADMIN_PASSWORD.'],
  [{ LOG_LEVEL: 'loud' }, level],
  [{ CORS_ORIGIN: 'app.example.com' }, origin],
  [{ CORS_ORIGIN: 'https://app.example.com/' }, origin],
  [{ CORS_ORIGIN: 'https://app.example.com,' }, origin],
  [{ CORS_ORIGIN: 'https://*.example.com' }, origin],
  [{ CORS_ORIGIN: 'https://app.example.com, *' }, origin],
  [{ CORS_ORIGIN: 'https://user@app.example.com' }, origin],
  [{ CORS_ORIGIN: 'null' }, origin],
  [{ CORS_ORIGIN: 'file://' }, origin],
  [{ CORS_ORIGIN: 'wss://app.example.com' }, origin],
  [{ TRUST_PROXY: 'true, 10.0.0.0/8' }, proxy],
  [{ TRUST_PROXY: '10.0.0.0/8, false' }, proxy],
  [{ TRUST_PROXY: '1' }, proxy],
  [{ TRUST_PROXY: 'yes' }, proxy],
  [{ TRUST_PROXY: '10.0.0.0/33' }, proxy],
  [{ TRUST_PROXY: '10.0.0.0/0' }, proxy],
  [{ TRUST_PROXY: '::1/129' }, proxy],
  [{ TRUST_PROXY: '10.0.0.0/8/8' }, proxy],
  [{ SECRET: 'too short' }, secret],
  [
    { NOTIFICATIONS_URL: 'mysql://u:secret@h/d', DATABASE_URL: 'postgres://h/d' },
    'NOTIFICATIONS_URL must be an address such as postgres://user:password@host:5432/database.',
  ],
  [{ NOTIFICATIONS_URL: 'postgres://h/d' }, 'DATABASE_URL is required with NOTIFICATIONS_URL.'],
  [{ REPLICA_URLS: 'postgres://h/d' }, 'DATABASE_URL is required with REPLICA_URLS.'],
  [{ REPLICA_URLS: 'postgres://h/d, mysql://u:secret@h/d', DATABASE_URL: 'postgres://h/d' }, replicas],
  [{ REPLICA_URLS: 'postgres://h/d, postgres://h/d', DATABASE_URL: 'postgres://h/d' }, replicas],
  [{ SMTP_URL: 'mail.example.com', MAIL_FROM: 'a@example.com', PUBLIC_URL }, smtp],
  [{ SMTP_URL: 'smtp://u:secret@h:port', MAIL_FROM: 'a@example.com', PUBLIC_URL }, smtp],
  [{ SMTP_URL: 'smtp://mail.example.com', PUBLIC_URL }, 'MAIL_FROM is required with SMTP_URL.'],
  [
    { SMTP_URL: 'smtp://mail.example.com', MAIL_FROM: 'a@example.com' },
    'PUBLIC_URL or PASSWORD_URL is required with SMTP_URL.',
  ],
  [{ MAIL_FROM: 'nobody' }, from],
  [{ MAIL_FROM: 'a@example.com, b@example.com' }, from],
  [{ MAIL_FROM: 'A\r\nBcc: <b@example.com>' }, from],
  [{ WEBHOOK_URL: 'https://example.com/' }, 'WEBHOOK_SECRET is required with WEBHOOK_URL.'],
  [{ WEBHOOK_EVENTS: 'user.created' }, 'WEBHOOK_URL is required with WEBHOOK_EVENTS.'],
  [
    { WEBHOOK_URL: 'http://example.com/', WEBHOOK_SECRET },
    'WEBHOOK_URL must be an https: URL (http: is only possible with WEBHOOK_ALLOW_PRIVATE).',
  ],
  [
    { WEBHOOK_URL: 'https://example.com/', WEBHOOK_SECRET: 'secret' },
    'WEBHOOK_SECRET must be whsec_ and 24 to 64 bytes in base64, or a list of up to 10 such secrets.',
  ],
  [
    { WEBHOOK_URL: 'https://example.com/', WEBHOOK_SECRET, WEBHOOK_EVENTS: 'user.renamed' },
    'WEBHOOK_EVENTS: there is no event user.renamed.',
  ],
  [{ PASSWORD_URL: 'app.example.com' }, page],
  [{ PRODUCT_NAME: ' ' }, name],
  [{ PRODUCT_NAME: 'Usher\nBcc: all@example.com' }, name],
  [{ PRODUCT_NAME: 'x'.repeat(101) }, name],
  ...['red', '#12', '#12345', '#ggg', '#fff;background:url(//example.com)', '#fff\n']
    .map((color): [Record<string, string>, string] => [{ PRODUCT_COLOR: color }, productColor]),
  ...['https://example.com/logo.svg', '//example.com/logo.svg', '/a b', 'logo.svg', '/\\\\evil.example/x']
    .map((PRODUCT_LOGO): [Record<string, string>, string] => [{ PRODUCT_LOGO }, logo]),
  ...['javascript:alert(1)', '//evil.example', 'app.example.com', 'https://a b']
    .map((APP_URL): [Record<string, string>, string] => [{ APP_URL }, app]),
  [{ TERMS_URL: 'data:text/html,x' }, 'TERMS_URL must be a path or an address such as https://example.com/terms.'],
  [{ PRIVACY_URL: 'x' }, 'PRIVACY_URL must be a path or an address such as https://example.com/privacy.'],
  [{ PASSWORD_URL: 'https://app.example.com/#/password' }, page],
  [{ USERS_VISIBLE_TO: 'owners' }, users],
  [{ UPLOAD_MAX_BYTES: '0' }, not(bytes, '0')],
  [{ UPLOAD_MAX_BYTES: '10MB' }, bytes],
  [{ UPLOAD_QUOTA_BYTES: '-1' }, 'UPLOAD_QUOTA_BYTES must be a whole number of bytes, or 0 for no limit, not -1.'],
  ...['RS256', 'none', 'es256'].map((name): typeof bad[number] =>
    [{ SIGNING_ALGORITHM: name }, 'SIGNING_ALGORITHM must be EdDSA or ES256.']),
  ...['a b', 'a\nb', 'x'.repeat(201)].map((name): typeof bad[number] => [{ TOKEN_ISSUER: name },
    'TOKEN_ISSUER must be a name or an address of up to 200 characters without spaces, such as https://api.example.com.']),
  [{ SESSION_SECONDS: '90' }, 'SESSION_SECONDS must be a whole number of seconds from 600 to 34560000, not 90.'],
  [{ SESSION_IDLE_SECONDS: '30d' }, 'SESSION_IDLE_SECONDS must be a whole number of seconds from 600 to 34560000.'],
  [{ ACCESS_TOKEN_SECONDS: '15' }, 'ACCESS_TOKEN_SECONDS must be a whole number of seconds from 60 to 86400, not 15.'],
  [
    { SIGNING_KEY_SECONDS: '60' },
    'SIGNING_KEY_SECONDS must be a whole number of seconds from 3600 to 34560000, not 60.',
  ],
  [
    { PASSWORD_TOKEN_SECONDS: '30' },
    'PASSWORD_TOKEN_SECONDS must be a whole number of seconds from 300 to 604800, not 30.',
  ],
  [{ AUDIT_SECONDS: '365' }, 'AUDIT_SECONDS must be a whole number of seconds from 86400 to 315360000, not 365.'],
  [{ SESSION_IDLE_SECONDS: '7776001' },
    'SESSION_IDLE_SECONDS 7776001 has no effect beyond SESSION_SECONDS, which is 7776000: set at most that.'],
  [{ ACCESS_TOKEN_SECONDS: '3601', SESSION_IDLE_SECONDS: '3600' },
    'ACCESS_TOKEN_SECONDS 3601 has no effect beyond SESSION_IDLE_SECONDS, which is 3600: set at most that.'],
  [
    { PASSWORD_HASH_MEMORY_KIB: '64' },
    'PASSWORD_HASH_MEMORY_KIB must be a whole number of KiB from 7168 to 1048576, not 64.',
  ],
  [{ PASSWORD_HASH_PASSES: '0' }, 'PASSWORD_HASH_PASSES must be a whole number from 1 to 100, not 0.'],
  [{ PASSWORD_HASH_PASSES: '1' }, cost('19456 times 1')],
  [{ PASSWORD_HASH_MEMORY_KIB: '7168' }, cost('7168 times 2')],
  [{ PASSWORD_HASH_MEMORY_KIB: '1048576' }, cost('1048576 times 2')],
  [{ POOL_SIZE: '1' }, 'POOL_SIZE must be a whole number of connections from 2 to 1000, not 1.'],
  [{ POOL_SIZE: '667' }, embedded('667 takes up to 1002')],
  [{ POOL_SIZE: '100', WORKERS: '8' }, embedded('100 takes up to 1359')],
  [{ THROTTLE_ACCOUNT_BURST: '0' }, 'THROTTLE_ACCOUNT_BURST must be a whole number from 1 to 1000000, not 0.'],
  [{ THROTTLE_ADDRESS_BURST: '2.5' }, 'THROTTLE_ADDRESS_BURST must be a whole number from 1 to 1000000, not 2.5.'],
  [{ THROTTLE_RESET_PER_MINUTE: '0' }, 'THROTTLE_RESET_PER_MINUTE must be a number from 0.01 to 1000000, not 0.'],
  [{ THROTTLE_REFRESH_PER_MINUTE: 'Infinity' }, 'THROTTLE_REFRESH_PER_MINUTE must be a number from 0.01 to 1000000.'],
  ...['', 'false'].map((SIGN_UP): typeof bad[number] => [{ SIGN_UP, THROTTLE_SIGN_UP_BURST: '5' },
    'THROTTLE_SIGN_UP_BURST has no effect without SIGN_UP: set SIGN_UP to true, or remove THROTTLE_SIGN_UP_BURST.']),
  [
    { THROTTLE_LOGIN_MAIL_BURST: '5' }, 'THROTTLE_LOGIN_MAIL_BURST has no effect without LOGIN_MAIL: ' +
      'set LOGIN_MAIL to true, or remove THROTTLE_LOGIN_MAIL_BURST.',
  ],
  [{ LIVE_CONNECTIONS: '100', LIVE_CONNECTIONS_PER_NETWORK: '101' },
    'LIVE_CONNECTIONS_PER_NETWORK 101 has no effect beyond LIVE_CONNECTIONS, which is 100: set at most that.'],
  [{ LIVE_SUBSCRIPTIONS_PER_NETWORK: '2001' },
    'LIVE_SUBSCRIPTIONS_PER_NETWORK 2001 has no effect beyond LIVE_SUBSCRIPTIONS, which is 2000: set at most that.'],
  [{ POSTS_PER_HOUR: 'Infinity' }, 'POSTS_PER_HOUR must be a whole number of posts, or 0 for no limit.'],
]

for (const [setting, sentence] of bad) {
  t.test(`8 settings: ${JSON.stringify(setting)} is rejected with one sentence`, async (t) => {
    t.throws(() => parseSettings(setting), new Error(sentence))
  })
}

t.test('14.5 settings: all invalid ones are reported at once, one sentence per line', async (t) => {
  t.throws(() => parseSettings({
    PORT: 'http', LOG_LEVEL: 'loud', ADMIN_EMAIL: 'root', SIGN_UP: 'true', TRUST_PROXY: 'yes, no', WEBHOOK_EVENTS: 'x',
  }), {
    message: [
      'ADMIN_PASSWORD is required with ADMIN_EMAIL.', 'WEBHOOK_URL is required with WEBHOOK_EVENTS.', port, email,
      level, proxy, 'SMTP_URL is required with SIGN_UP.', 'PUBLIC_URL is required with SIGN_UP.',
    ].join('\n'),
  })
})

t.test('14.5 every setting of a wrong type or out of range is reported by a start, together with the others', async (t) => {
  // What others than these accept is limited.
  const free = [
    'HOST', 'CONFIG', 'DATA_DIR', 'MAIL_TEMPLATES', 'NODE_ENV', 'METRICS_HOST', 'WEBHOOK_URL', 'WEBHOOK_EVENTS',
    'BREACHED_PASSWORDS_FILE',
  ]
  const texts: Partial<Record<string, string>> = {
    WEBHOOK_SECRET: 'short', ADMIN_PASSWORD: 'x', SECRET: 'x', FORMER_SECRET: 'x', PRODUCT_NAME: '\u0007', TOKEN_ISSUER: 'a b',
  }
  const limited = settingNames.filter((name) => !free.includes(name))
  const wrong = ['no such value\u0007', '-1', '1e30'].map((text) => Object.fromEntries(limited.flatMap((name) => {
    const given = texts[name] ?? text
    const isRejected = checkSettings({ [name]: given }).errors.some((error) => error.startsWith(`${name} must be `))
    return isRejected ? [[name, given]] : []
  })))
  const all = wrong.flatMap((settings) => Object.keys(settings))
  // The rules of webhooks have sentences of their own.
  t.strictSame(limited.filter((name) => !all.includes(name) && name !== 'WEBHOOK_SECRET'), [], 'each can be wrong')
  for (const settings of wrong) {
    const { code, stderr } = await failStart(settings, t.testdir())
    t.equal(code, 1)
    const names = stderr.split('\n').flatMap((line) => /^(\w+) must be /.exec(line)?.[1] ?? [])
    t.strictSame(Object.keys(settings).filter((name) => !names.includes(name)), [])
    t.notMatch(stderr, 'usher: ', 'nothing has the name of an option')
  }
  const { stderr } = await failStart({ UPLOAD_MAX_BYTES: '-1', PORT: 'x' }, t.testdir())
  t.equal(stderr.trim(), [
    'PORT must be a whole number from 0 (any free port) to 65535.',
    'UPLOAD_MAX_BYTES must be a whole number of bytes, at least 1, not -1.',
  ].join('\n'))
})

t.test('14.5 commands report mistakes of the configuration file together with those of the environment', async (t) => {
  const cwd = t.testdir({ 'usher.config.mjs': 'export default { bodyLimits: 1, hookSeconds: -1 }\n' })
  const { code, stderr } = await runCommand(['users', 'list'], { PORT: 'x', LOG_LEVEL: 'loud' }, cwd)
  t.equal(code, 1)
  t.match(stderr, /bodyLimits: did you mean bodyLimit\?\n.*hookSeconds must .*\nPORT must .*\nLOG_LEVEL must .*\n$/)
})

t.test('14.5 an empty variable counts as absent, also if .env has a value', async (t) => {
  const shown = async (cwd: string, settings: Record<string, string>, name: string) => {
    const { stdout, stderr } = await runCommand(['config', '--json'], settings, cwd)
    t.equal(stderr, '')
    const { settings: all } = JSON.parse(stdout) as { settings: { name: string, value: unknown, source: string }[] }
    const { value, source } = all.find((setting) => setting.name === name)!
    return [value, source]
  }
  const plain = t.testdir({
    one: { '.env': 'PRODUCT_NAME=Of the file\nLOG_LEVEL=warn\n' },
    two: { '.env': '\uFEFFPRODUCT_NAME=Of the file\nLOG_LEVEL=warn\n' },
    three: { '.env': Buffer.from('\uFEFFPRODUCT_NAME=Notes\n', 'utf16le') },
    four: { '.env': Buffer.from('PRODUCT_NAME=Notes\n', 'utf16le') },
  })
  t.strictSame(await shown(`${plain}/one`, { PRODUCT_NAME: '' }, 'PRODUCT_NAME'), ['Of the file', '.env'])
  t.strictSame(await shown(`${plain}/one`, { PRODUCT_NAME: 'Given' }, 'PRODUCT_NAME'), ['Given', 'environment'])
  t.strictSame(await shown(`${plain}/two`, {}, 'PRODUCT_NAME'), ['Of the file', '.env'], 'after a byte order mark')
  t.strictSame(await shown(`${plain}/two`, {}, 'LOG_LEVEL'), ['warn', '.env'])
  for (const folder of ['three', 'four']) {
    const { code, stderr } = await runCommand(['config'], {}, `${plain}/${folder}`)
    t.equal(code, 1)
    t.match(stderr, '.env is not in UTF-8: save it again with that encoding.')
  }
})

t.test('14.5 settings: a name that is close to that of a setting produces a warning', async (t) => {
  const meant = (environment: Record<string, string>) => warnOfNames(environment, settingNames)
    .map((warning) => warning.match(/^(\w+) .+ did you mean (\w+)\?$/)?.slice(1).join(' '))
  t.same(
    meant({ DATABSE_URL: 'x', LOG_LVEL: 'x', database_url: 'x', USHER_PORT: 'x', UPLAOD_MAX_BYTE: 'x', SECRETS: 'x' }),
    [
      'DATABSE_URL DATABASE_URL', 'LOG_LVEL LOG_LEVEL', 'database_url DATABASE_URL', 'USHER_PORT PORT',
      'UPLAOD_MAX_BYTE UPLOAD_MAX_BYTES', 'SECRETS SECRET',
    ]
  )
  t.same(meant({
    PATH: 'x',
    HOME: 'x',
    HOSTNAME: 'x',
    PGPORT: 'x',
    POST: 'x',
    TMPDIR: 'x',
    LOGNAME: 'x',
    NODE_OPTIONS: 'x',
    SSH_TTY: 'x',
    XDG_DATA_DIRS: 'x',
    DATABSE_URL: '',
  }), [])
  t.same(meant({ DATABASE_URL: 'x', DATABASE_URLS: 'x' }), [], 'a setting that is set is not misspelled')
})

t.test('14.4 settings: secrets and credentials in URLs are masked, and invalid URLs are not shown', async (t) => {
  t.same(
    ['SECRET', 'ADMIN_PASSWORD', 'S3_SECRET_ACCESS_KEY'].map((name) => maskSetting(name, 'hidden')),
    Array(3).fill('********')
  )
  t.same(maskSetting('WEBHOOK_SECRET', ['hidden', 'hidden']), '********')
  const urls: [name: string, given: string, shown: string][] = [
    [
      'DATABASE_URL',
      'postgres://usher:hidden@one:1,two:2/usher?sslmode=require',
      'postgres://usher:********@one:1,two:2/usher?sslmode=require',
    ],
    [
      'DATABASE_URL',
      'postgres://one/usher?user=usher&password=hidden',
      'postgres://one/usher?user=usher&password=********',
    ],
    ['DATABASE_URL', 'postgres://usher@one/usher', 'postgres://usher@one/usher'],
    ['SMTP_URL', 'smtps://user:hidden@mail.example.com', 'smtps://********@mail.example.com'],
    ['SMTP_URL', 'smtps://hidden@mail.example.com', 'smtps://********@mail.example.com'],
    ['WEBHOOK_URL', 'https://hidden@hooks.example.com/hidden', 'https://hooks.example.com/********'],
    ['PASSWORD_URL', 'https://app.example.com/', 'https://app.example.com/'],
    ['PUBLIC_URL', 'https://example.com:8443/a', 'https://example.com:8443/a'],
  ]
  for (const [name, given, shown] of urls) t.equal(maskSetting(name, given), shown)
  // The password may be anywhere in a value with a mistake.
  const mistaken = [
    '"postgres://user:hidden@db:5432/usher"', 'host=db user=x password=hidden dbname=usher', ' postgres://u:hidden@h/d',
    'user:hidden@host/db', 'postgres:/u:hidden@h/d', 'mysql://u:hidden@h:port', 'postgres://us/er:hid@d/en@one/usher',
    'postgres://usher:hid@d:en/@one:1,two:2/usher',
  ]
  for (const given of mistaken) t.equal(maskSetting('DATABASE_URL', given), '(invalid, not shown)', given)
  for (const given of [
    'smtp://user:hidden', 'user:hidden@mail', 'smtp://user:hid/den@mail', 'smtp://user:1#hidden@mail',
    'smtp://user:h@id/den@mail', 'PORT',
  ]) {
    t.equal(maskSetting('SMTP_URL', given), '(invalid, not shown)', given)
  }
  t.equal(maskSetting('PRINT_SECRETS', true), true)
})

t.test('8 a version of Node.js that is too old is rejected with one sentence', async (t) => {
  for (const version of ['24.0.0', '22.18.0', '23.1.0', process.versions.node]) requireNode(version)
  t.throws(() => requireNode('20.20.2'), { message: 'Usher needs Node.js 22.18 or later; this is 20.20.2.' })
  t.throws(() => requireNode('22.17.1'), { message: 'Usher needs Node.js 22.18 or later; this is 22.17.1.' })
})
