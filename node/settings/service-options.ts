import { join, resolve } from 'node:path'
import type { UsherOptions } from '../../schema/options/options.ts'
import type { GivenS3 } from '../../schema/options/s3.ts'
import { multiplyDeadlines } from '../../schema/options/deadlines.ts'
import { audiences, type GivenPolicy } from '../../schema/options/policy.ts'
import { actionsOfSetting, ownOptions } from './config-values.ts'
import { providersOf } from './providers.ts'
import type { Settings } from './settings.ts'

/**
 * Returns the options of the plugin that settings give to nodes and to commands alike. A command with another
 * lifetime of tokens, for example, would delete signing keys and ended sessions while nodes need them.
 */
export function serviceOptions (settings: Settings) {
  const own = ownOptions(settings.file?.options ?? {})
  return {
    ...own,
    notificationsUrl: settings.NOTIFICATIONS_URL,
    // A failover may begin when the database has answered.
    deadlines: {
      ...multiplyDeadlines(settings.DEADLINE_FACTOR),
      databaseFailover: Math.max(1, settings.DATABASE_WAIT_SECONDS * 1000),
      ...own.deadlines,
    },
    pages: {
      ...own.pages,
      productName: settings.PRODUCT_NAME,
      color: settings.PRODUCT_COLOR,
      logo: settings.PRODUCT_LOGO,
      appUrl: settings.APP_URL,
      termsUrl: settings.TERMS_URL,
      privacyUrl: settings.PRIVACY_URL,
    },
    passwordUrl: settings.PASSWORD_URL,
    publicUrl: settings.PUBLIC_URL,
    providers: providersOf(settings),
    policy: policyOf(settings),
    signingAlgorithm: settings.SIGNING_ALGORITHM,
    formerSecret: settings.FORMER_SECRET,
    issuer: settings.TOKEN_ISSUER,
    accessTokenSeconds: settings.ACCESS_TOKEN_SECONDS,
    stepUpSeconds: settings.STEP_UP_SECONDS,
    secondFactor: settings.SECOND_FACTOR,
    sessionSeconds: settings.SESSION_SECONDS,
    sessionIdleSeconds: settings.SESSION_IDLE_SECONDS,
    signingKeySeconds: settings.SIGNING_KEY_SECONDS,
    passwordTokenSeconds: settings.PASSWORD_TOKEN_SECONDS,
    auditSeconds: settings.AUDIT_SECONDS,
    passwordHash: passwordHashOf(settings),
    throttle: throttleOf(settings),
    live: {
      ...own.live,
      connectionsPerNetwork: settings.LIVE_CONNECTIONS_PER_NETWORK,
      connections: settings.LIVE_CONNECTIONS,
      subscriptionsPerNetwork: settings.LIVE_SUBSCRIPTIONS_PER_NETWORK,
      subscriptions: settings.LIVE_SUBSCRIPTIONS,
    },
  } satisfies UsherOptions
}

/** Returns the absolute path of a file or a folder that a setting names. */
export const pathIn = ({ place }: Pick<Settings, 'place'>, path: string): string => resolve(place?.cwd ?? '', path)

/** Returns the folder of the node's data. */
export const dataDirOf = (settings: Pick<Settings, 'DATA_DIR' | 'place'>): string => pathIn(settings, settings.DATA_DIR)

/** Returns the options of the plugin that select where uploads are. */
export function storageOf (settings: Settings) {
  return {
    uploadsDir: pathIn(settings, settings.file?.options.uploadsDir ?? join(settings.DATA_DIR, 'uploads')),
    s3: s3Of(settings),
    uploadsTo: settings.UPLOADS_TO,
    uploadMaxBytes: settings.UPLOAD_MAX_BYTES,
  } satisfies UsherOptions
}

/** Returns the option `s3`, or undefined without a bucket. Settings that were checked have all members or none. */
export function s3Of ({
  S3_ENDPOINT: endpoint, S3_BUCKET: bucket, S3_ACCESS_KEY_ID: accessKeyId, S3_SECRET_ACCESS_KEY: secretAccessKey,
  S3_REGION: region, S3_PREFIX: prefix, S3_PATH_STYLE: pathStyle, S3_REDIRECT_SECONDS: redirectSeconds,
}: Settings): GivenS3 | undefined {
  if (!endpoint || !bucket || !accessKeyId || !secretAccessKey) return undefined
  return { endpoint, bucket, accessKeyId, secretAccessKey, region, prefix, pathStyle, redirectSeconds }
}

/**
 * Returns the options that say which PostgreSQL schema has the tables: by default that of the configuration file, or of
 * the plugin.
 */
export function schemaOf ({ file }: Pick<Settings, 'file'>, schema = file?.options.schema) {
  return { databaseUrl: 'postgres://localhost', ...schema !== undefined && { schema } } satisfies UsherOptions
}

/** Returns the cost of password hashes. */
export function passwordHashOf ({ PASSWORD_HASH_MEMORY_KIB: memoryKiB, PASSWORD_HASH_PASSES: passes }: Settings) {
  return { memoryKiB, passes }
}

// Returns the rules of who may do and read what (contract 11.1). Those of the file replace what settings do not give.
function policyOf (settings: Settings): GivenPolicy {
  const rules = Object.entries(actionsOfSetting).flatMap(([name, actions]) =>
    actions.map((action) => [action, audiences[settings[name as keyof typeof actionsOfSetting]]]))
  return { ...Object.fromEntries(rules), ...settings.file?.options.policy }
}

function throttleOf (settings: Settings) {
  return {
    account: { burst: settings.THROTTLE_ACCOUNT_BURST, perMinute: settings.THROTTLE_ACCOUNT_PER_MINUTE },
    consecutiveFailures: settings.THROTTLE_CONSECUTIVE_FAILURES,
    address: { burst: settings.THROTTLE_ADDRESS_BURST, perMinute: settings.THROTTLE_ADDRESS_PER_MINUTE },
    refresh: { burst: settings.THROTTLE_REFRESH_BURST, perMinute: settings.THROTTLE_REFRESH_PER_MINUTE },
    reset: { burst: settings.THROTTLE_RESET_BURST, perMinute: settings.THROTTLE_RESET_PER_MINUTE },
    secondFactor: {
      burst: settings.THROTTLE_SECOND_FACTOR_BURST, perMinute: settings.THROTTLE_SECOND_FACTOR_PER_MINUTE,
    },
    signUp: { burst: settings.THROTTLE_SIGN_UP_BURST, perMinute: settings.THROTTLE_SIGN_UP_PER_MINUTE },
    loginMail: { burst: settings.THROTTLE_LOGIN_MAIL_BURST, perMinute: settings.THROTTLE_LOGIN_MAIL_PER_MINUTE },
    mail: { burst: settings.THROTTLE_MAIL_BURST, perMinute: settings.THROTTLE_MAIL_PER_MINUTE },
    verifiedMail: {
      burst: settings.THROTTLE_VERIFIED_MAIL_BURST,
      perMinute: settings.THROTTLE_VERIFIED_MAIL_PER_MINUTE,
    },
  }
}
