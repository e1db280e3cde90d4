import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { textColorOn } from '../../../schema/options/color.ts'
import { NotFound } from '../../../schema/http/errors.ts'
import { readDesign } from '../components.ts'
import { FONT, readFont } from '../font.ts'
import { mostCommonPasswords } from '../../../schema/sign-in/passwords/common-passwords.ts'
import { passwordStrength } from '../../../schema/sign-in/passwords/strength.ts'
import { failureTexts, type PageText } from '../../../schema/options/page-texts.ts'
import { describeUserAgent } from '../../../schema/strings/user-agent.ts'
import type { Texts } from '../../../schema/translations/en.ts'
import { describeInput, inputText } from '../../../schema/translations/describe-input.ts'
import { formatText, toSentence } from '../../../schema/translations/format.ts'

const FOLDER = join(import.meta.dirname, 'assets')
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}
// Ten bytes each. Whoever tries passwords begins with them; the service knows all.
const MOST_COMMON = 1000
const IMMUTABLE = 'public, max-age=31536000, immutable'

/**
 * Serves the style and the scripts of the pages, with the color and the texts of the options. Returns a function that
 * returns their folder for a language, relative to the prefix and with a slash at the end. Its name contains a hash of
 * all files, so that browsers can keep them, and scripts of one release import each other.
 */
export function serveAssets (
  app: FastifyInstance, languages: ReadonlyMap<string, Texts>
): (language: string) => string {
  const { color } = app.usherOptions.pages
  // The value is a color in hexadecimal notation, so it needs no escaping.
  const withColors = (source: string) =>
    source.replaceAll('{{color}}', color).replaceAll('{{textOnColor}}', textColorOn(color))
  const assets = new Map<string, string | Buffer>(
    readdirSync(FOLDER).sort().map((name) => [name, withColors(readFileSync(join(FOLDER, name), 'utf8'))])
  )
  assets.set('design.css', readDesign(color))
  assets.set(FONT, readFont())
  const functions = [formatText, toSentence, describeUserAgent, describeInput, inputText, passwordStrength]
  assets.set('functions.js', functions.map((given) => `export ${given}\n`).join('\n'))
  assets.set('common.js', `export const common = new Set(${JSON.stringify(mostCommonPasswords(MOST_COMMON))})\n`)
  const texts = new Map([...languages].map(([language, given]) => [
    language, `export const { texts, failures } = ${JSON.stringify(textsOfScripts(given))}\n`,
  ]))
  const hash = createHash('sha256')
  for (const [name, content] of [...assets, ...texts]) hash.update(`${name}\0`).update(content).update('\0')
  const version = hash.digest('base64url').slice(0, VERSION_LENGTH)
  const [first = ''] = texts.keys()

  app.get('/pages/:version/:file', { schema: { hide: true } }, (request: FastifyRequest, reply) => {
    const { version: asked, file } = request.params as { version: string, file: string }
    const language = asked.slice(VERSION_LENGTH + 1)
    const text = file === 'texts.js' ? texts.get(language) ?? texts.get(first) : assets.get(file)
    if (text === undefined) throw new NotFound()
    const isCurrent = asked.startsWith(`${version}.`) && texts.has(language)
    // A page of another release may be open, or come from another node, while nodes are replaced.
    return reply.type(TYPES[extname(file)]!).headers({
      'cache-control': isCurrent ? IMMUTABLE : 'no-cache',
      'x-content-type-options': 'nosniff',
    }).send(text)
  })
  return (language) => `pages/${version}.${language}/`
}

// Characters of the hash in the name of the folder; a dot and the language follow.
const VERSION_LENGTH = 16

// All other texts are in the pages.
const SHOWN: readonly PageText[] = [
  'profileSaved', 'emailPending', 'verifySent', 'passwordChanged', 'unknownDevice',
  'sessionEnded', 'unreachable', 'failed', 'passkeyUnused', 'passkeyUnusedCode', 'passkeyRejected', 'passkeyFailed',
  'passkeyExists', 'passkeyAdded', 'passkeyNotAdded', 'passkeyNeverUsed', 'passkeyRenamed', 'passkeyRemoved',
  'passkeyRemoveConfirm', 'totpActive', 'totpRemoved', 'totpRemoveConfirm', 'recoveryNewConfirm', 'recoveryCopied',
  'factorRequired', 'factorUnused', 'identityLink', 'identityRemoveConfirm', 'identityRemoved', 'stepUpWith', 'keyNever',
  'keyCopied', 'keyDeleteConfirm', 'keyRevokeLinks', 'keyDeleted',
  'filePublic', 'filePrivate', 'fileMakePublic', 'fileMakePrivate', 'fileChanged', 'fileDeleteConfirm', 'fileDeleted',
  'linkUnnamed', 'linkOfKey', 'linkRevoked', 'tooManyWait', 'sentAgain', 'sendAgainLimit', 'loggedInAs', 'typedKept',
  'valueMissing', 'valueCharacters', 'valueLong', 'invalidForm',
  'deviceOn', 'activeNow', 'lastUsed', 'othersEnded', 'recoveryLeft', 'exportDone', 'stateOn', 'stateOff', 'endOthersConfirm', 'logOutEverywhereConfirm',
  'strengthWeak', 'strengthFair', 'strengthGood', 'strengthStrong', 'strengthShort', 'longPassword',
  'personalPassword', 'commonPassword', 'yes', 'no',
  'joinInvited', 'joinInvitedBy', 'joinOther', 'ownerRole', 'adminRole', 'memberRole',
  'organizationLeaveConfirm', 'organizationLeft', 'organizationFounded', 'organizationSaved',
  'organizationDeleted', 'memberRemoveConfirm', 'memberRemoved', 'memberChanged', 'invitationSent', 'invitationWithdrawn',
]

function textsOfScripts (texts: Texts) {
  return {
    texts: Object.fromEntries(SHOWN.map((name) => [name, texts[name]])),
    failures: Object.fromEntries(Object.entries(failureTexts).map(([failure, name]) => [failure, texts[name]])),
  }
}
