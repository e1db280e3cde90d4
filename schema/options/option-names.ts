import { Settings } from './options.ts'

// Options that are not in `Settings`, because they are not values.
const others = [
  'prefix', 'logLevel', 'logSerializers', 'databaseUrl', 'sql', 'notificationsUrl', 'replicaUrls', 'emitter', 'policy',
  'roles', 'onRoleInUse',
  'mailer', 'mailTemplates', 'mailTexts', 'onFirstAdmin', 'onNoAdmin', 'onAdminIgnored', 'hooks', 'userFields', 'claims',
  'webhooks', 'providers', 'organizations', 'shownSettings',
]

// fastify-cli passes `skipOverride`, and with `--options` the options of the Fastify server, to every plugin of an app.
// @fastify/autoload passes on what it gets. An option of Usher with the same name, such as `bodyLimit`, is Usher's.
const ofTools: ReadonlySet<string> = new Set([
  'skipOverride', 'encapsulate', 'autoload',
  'ajv', 'allowErrorHandlerOverride', 'allowUnsafeRegex', 'bodyLimit', 'caseSensitive', 'childLoggerFactory',
  'clientErrorHandler', 'connectionTimeout', 'constraints', 'disableRequestLogging', 'exposeHeadRoutes',
  'forceCloseConnections', 'frameworkErrors', 'genReqId', 'handlerTimeout', 'http', 'http2', 'http2SessionTimeout',
  'https', 'ignoreDuplicateSlashes', 'ignoreTrailingSlash', 'jsonShorthand', 'keepAliveTimeout', 'logController',
  'logger', 'loggerInstance', 'maxParamLength', 'maxRequestsPerSocket', 'onConstructorPoisoning', 'onProtoPoisoning',
  'pluginTimeout', 'querystringParser', 'requestIdHeader', 'requestIdLogLabel', 'requestTimeout', 'return503OnClosing',
  'rewriteUrl', 'routerOptions', 'schemaController', 'schemaErrorFormatter', 'serializerOpts', 'serverFactory',
  'trustProxy', 'useSemicolonDelimiter',
])

/** The names of all options of the plugin. */
export const optionNames: readonly string[] = [...Object.keys(Settings.properties), ...others]

/**
 * Returns the options without those that tools pass to every plugin. Throws the message of `errorOf` for an option that
 * does not exist.
 */
export function dropToolOptions<Given extends object> (
  given: Given, errorOf: (message: string) => Error
): Given {
  const entries = Object.entries(given)
  for (const [name] of entries) {
    if (optionNames.includes(name) || ofTools.has(name)) continue
    const similar = optionNames.find((known) => areSimilar(known, name))
    throw errorOf(`there is no option ${name}${similar === undefined ? '' : `: did you mean ${similar}?`}`)
  }
  return Object.fromEntries(entries.filter(([name]) => optionNames.includes(name))) as Given
}

/** Returns whether two names differ in at most two characters, regardless of case. */
export function areSimilar (one: string, other: string): boolean {
  if (Math.abs(one.length - other.length) > 2) return false
  const [a, b] = [one.toLowerCase(), other.toLowerCase()]
  let distances = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let row = 1; row <= a.length; row++) {
    const next = [row]
    for (let column = 1; column <= b.length; column++) {
      const replaced = distances[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1)
      next.push(Math.min(replaced, distances[column]! + 1, next[column - 1]! + 1))
    }
    distances = next
  }
  return distances[b.length]! <= 2
}
