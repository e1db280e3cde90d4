import type { UsherConfig } from '../../schema/options/config.ts'

/**
 * The settings that set an option of the plugin, with its place in the options. The setting takes precedence over what
 * a configuration file says (contract 14.6).
 */
export const optionOfSetting = {
  DATABASE_URL: 'databaseUrl',
  NOTIFICATIONS_URL: 'notificationsUrl',
  REPLICA_URLS: 'replicaUrls',
  PUBLIC_URL: 'publicUrl',
  ADMIN_EMAIL: 'admin.email',
  ADMIN_PASSWORD: 'admin.password',
  SLOW_STATEMENT_MS: 'slowStatementMs',
  CORS_ORIGIN: 'origins',
  SECRET: 'secret',
  FORMER_SECRET: 'formerSecret',
  PASSWORD_URL: 'passwordUrl',
  SIGN_UP: 'signUp',
  LOGIN_MAIL: 'loginMail',
  CONSOLE: 'console',
  PRODUCT_NAME: 'pages.productName',
  PRODUCT_COLOR: 'pages.color',
  PRODUCT_LOGO: 'pages.logo',
  APP_URL: 'pages.appUrl',
  TERMS_URL: 'pages.termsUrl',
  PRIVACY_URL: 'pages.privacyUrl',
  UPLOAD_MAX_BYTES: 'uploadMaxBytes',
  UPLOADS_TO: 'uploadsTo',
  S3_ENDPOINT: 's3.endpoint',
  S3_BUCKET: 's3.bucket',
  S3_REGION: 's3.region',
  S3_ACCESS_KEY_ID: 's3.accessKeyId',
  S3_SECRET_ACCESS_KEY: 's3.secretAccessKey',
  S3_PREFIX: 's3.prefix',
  S3_PATH_STYLE: 's3.pathStyle',
  S3_REDIRECT_SECONDS: 's3.redirectSeconds',
  UPLOAD_QUOTA_BYTES: 'uploadQuotaBytes',
  UPLOAD_QUOTA_FILES: 'uploadQuotaFiles',
  POSTS_PER_HOUR: 'postsPerHour',
  SIGNING_ALGORITHM: 'signingAlgorithm',
  TOKEN_ISSUER: 'issuer',
  ACCESS_TOKEN_SECONDS: 'accessTokenSeconds',
  STEP_UP_SECONDS: 'stepUpSeconds',
  SECOND_FACTOR: 'secondFactor',
  SESSION_SECONDS: 'sessionSeconds',
  SESSION_IDLE_SECONDS: 'sessionIdleSeconds',
  SIGNING_KEY_SECONDS: 'signingKeySeconds',
  PASSWORD_TOKEN_SECONDS: 'passwordTokenSeconds',
  AUDIT_SECONDS: 'auditSeconds',
  PASSWORD_HASH_MEMORY_KIB: 'passwordHash.memoryKiB',
  PASSWORD_HASH_PASSES: 'passwordHash.passes',
  POOL_SIZE: 'poolSize',
  THROTTLE_ACCOUNT_BURST: 'throttle.account.burst',
  THROTTLE_ACCOUNT_PER_MINUTE: 'throttle.account.perMinute',
  THROTTLE_CONSECUTIVE_FAILURES: 'throttle.consecutiveFailures',
  THROTTLE_ADDRESS_BURST: 'throttle.address.burst',
  THROTTLE_ADDRESS_PER_MINUTE: 'throttle.address.perMinute',
  THROTTLE_REFRESH_BURST: 'throttle.refresh.burst',
  THROTTLE_REFRESH_PER_MINUTE: 'throttle.refresh.perMinute',
  THROTTLE_RESET_BURST: 'throttle.reset.burst',
  THROTTLE_RESET_PER_MINUTE: 'throttle.reset.perMinute',
  THROTTLE_SECOND_FACTOR_BURST: 'throttle.secondFactor.burst',
  THROTTLE_SECOND_FACTOR_PER_MINUTE: 'throttle.secondFactor.perMinute',
  THROTTLE_SIGN_UP_BURST: 'throttle.signUp.burst',
  THROTTLE_SIGN_UP_PER_MINUTE: 'throttle.signUp.perMinute',
  THROTTLE_LOGIN_MAIL_BURST: 'throttle.loginMail.burst',
  THROTTLE_LOGIN_MAIL_PER_MINUTE: 'throttle.loginMail.perMinute',
  THROTTLE_MAIL_BURST: 'throttle.mail.burst',
  THROTTLE_MAIL_PER_MINUTE: 'throttle.mail.perMinute',
  THROTTLE_VERIFIED_MAIL_BURST: 'throttle.verifiedMail.burst',
  THROTTLE_VERIFIED_MAIL_PER_MINUTE: 'throttle.verifiedMail.perMinute',
  LIVE_CONNECTIONS_PER_NETWORK: 'live.connectionsPerNetwork',
  LIVE_CONNECTIONS: 'live.connections',
  LIVE_SUBSCRIPTIONS_PER_NETWORK: 'live.subscriptionsPerNetwork',
  LIVE_SUBSCRIPTIONS: 'live.subscriptions',
} as const

/** The settings that say who may read something, with the actions of the policy that they decide. */
export const actionsOfSetting = {
  USERS_VISIBLE_TO: ['users:list', 'users:read'],
  EMAILS_VISIBLE_TO: ['users:read-email'],
  POSTS_VISIBLE_TO: ['posts:read'],
  UPLOADS_VISIBLE_TO: ['uploads:read'],
} as const

/** Returns the values that a configuration file has for settings, by their names. */
export function settingsOf (config: UsherConfig): Record<string, unknown> {
  return Object.fromEntries(Object.entries(optionOfSetting).flatMap(([name, path]) => {
    const value = path.split('.').reduce<unknown>((parent, key) => Reflect.get(Object(parent), key), config)
    return value === undefined ? [] : [[name, value]]
  }))
}

/** Returns the setting whose option has a place in the options, or undefined. */
export const settingOf = (path: string): string | undefined =>
  Object.entries(optionOfSetting).find(([, option]) => option === path)?.[0]

// Options that nodes get in another way, see node/run.ts. Commands do not get them: a mailer could send mails again.
const ofNode = ['routes', 'mailer', 'mailTemplates', 'webhooks', 'emitter', 'uploadsDir', 'providers', 'policy'] as const

/**
 * Returns the options of a configuration file that no setting sets and that concern nodes and commands alike, such as
 * the fields of users. Of groups such as `throttle`, other members than those of settings are included.
 */
export function ownOptions (config: UsherConfig) {
  const names = new Set([...ofNode, ...Object.values(optionOfSetting).filter((path) => !path.includes('.')), 'admin', 's3'])
  return Object.fromEntries(Object.entries(config).filter(([name]) => !names.has(name))) as
    Omit<UsherConfig, typeof ofNode[number]>
}

/** Returns a configuration whose policy has no rule for what settings decide that are given. */
export function withoutDecided (config: UsherConfig, given: readonly string[]): UsherConfig {
  const decided = Object.entries(actionsOfSetting)
    .flatMap(([setting, actions]) => given.includes(setting) ? [...actions] as string[] : [])
  if (!config.policy || decided.length === 0) return config
  const rules = Object.entries(config.policy).filter(([action]) => !decided.includes(action))
  return { ...config, policy: Object.fromEntries(rules) }
}
