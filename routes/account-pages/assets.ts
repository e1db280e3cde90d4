import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { textColorOn } from '../../schema/options/color.ts'
import { NotFound } from '../../schema/http/errors.ts'
import { readDesign } from '../pages/components.ts'
import { failureTexts, pageTexts, type PageText } from '../../schema/options/page-texts.ts'

const FOLDER = join(import.meta.dirname, 'assets')
const SHARED = join(import.meta.dirname, '..', 'pages')
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}
const IMMUTABLE = 'public, max-age=31536000, immutable'

/**
 * Serves the style and the scripts of the pages, with the color and the texts of the options. Returns their folder,
 * relative to the prefix and with a slash at the end. Its name contains a hash of all files, so that browsers can keep
 * them, and scripts of one release import each other.
 */
export function serveAssets (app: FastifyInstance): string {
  const { color, texts } = app.usherOptions.pages
  // The value is a color in hexadecimal notation, so it needs no escaping.
  const withColors = (source: string) =>
    source.replaceAll('{{color}}', color).replaceAll('{{textOnColor}}', textColorOn(color))
  const assets = new Map(
    readdirSync(FOLDER).sort().map((name) => [name, withColors(readFileSync(join(FOLDER, name), 'utf8'))])
  )
  assets.set('design.css', readDesign(color))
  assets.set('ui.js', readFileSync(join(SHARED, 'ui.js'), 'utf8'))
  assets.set(
    'texts.js', `export const { texts, failures } = ${JSON.stringify(textsOfScripts({ ...pageTexts, ...texts }))}\n`
  )
  const hash = createHash('sha256')
  for (const [name, text] of assets) hash.update(`${name}\0${text}\0`)
  const version = hash.digest('base64url').slice(0, 16)

  app.get('/pages/:version/:file', { schema: { hide: true } }, (request: FastifyRequest, reply) => {
    const { version: asked, file } = request.params as { version: string, file: string }
    const text = assets.get(file)
    if (text === undefined) throw new NotFound()
    // A page of another release may be open, or come from another node, while nodes are replaced.
    return reply.type(TYPES[extname(file)]!).headers({
      'cache-control': asked === version ? IMMUTABLE : 'no-cache',
      'x-content-type-options': 'nosniff',
    }).send(text)
  })
  return `pages/${version}/`
}

// All other texts are in the pages.
const SHOWN: readonly PageText[] = [
  'forgotSent', 'signUpSent', 'profileSaved', 'emailPending', 'verifySent', 'passwordChanged', 'unknownDevice',
  'sessionEnded', 'unreachable', 'failed', 'passkeyUnused', 'passkeyUnusedCode', 'passkeyRejected', 'passkeyFailed',
  'passkeyExists', 'passkeyAdded', 'passkeyNotAdded', 'passkeyNeverUsed', 'passkeyRenamed', 'passkeyRemoved',
  'passkeyRemoveConfirm', 'totpActive', 'totpRemoved', 'totpRemoveConfirm', 'recoveryNewConfirm', 'recoveryCopied',
  'factorRequired', 'factorUnused', 'identityLink', 'identityRemoveConfirm', 'identityRemoved', 'stepUpWith', 'keyNever',
  'keyCopied', 'keyDeleteConfirm', 'keyDeleted',
  'filePublic', 'filePrivate', 'fileMakePublic', 'fileMakePrivate', 'fileChanged', 'fileDeleteConfirm', 'fileDeleted',
  'linkUnnamed', 'linkRevoked',
]

function textsOfScripts (texts: Readonly<Record<PageText, string>>) {
  return {
    texts: Object.fromEntries(SHOWN.map((name) => [name, texts[name]])),
    failures: Object.fromEntries(Object.entries(failureTexts).map(([failure, name]) => [failure, texts[name]])),
  }
}
