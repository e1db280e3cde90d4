import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import fastifyMultipart from '@fastify/multipart'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { create as contentDisposition } from 'content-disposition'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { LiveUploadLink } from '../../db/uploads/upload-links.ts'
import { restoreUpload, type UploadRow } from '../../db/uploads/uploads.ts'
import type { Caller } from '../../plugins/access/caller.ts'
import { clientNetworksOf } from '../../plugins/http/client-info.ts'
import { onceClosed } from '../../plugins/http/raw/connections.ts'
import { rejectionOfCoding } from '../../plugins/http/content-coding.ts'
import { createResponseCutOff } from '../../plugins/http/raw/response-cut-off.ts'
import type { Mark } from '../../plugins/uploads/downloads.ts'
import type { SizeLimit } from '../../plugins/uploads/quota.ts'
import { addJsonParser } from '../../plugins/http/requests.ts'
import type { TemporaryFile } from '../../plugins/uploads/storage.ts'
import { showUpload, tagOfUpload, visibilityOf } from '../../plugins/uploads/show-upload.ts'
import { decodeCursor, encodeCursor } from '../../schema/http/cursor.ts'
import { combinedTag, permits, readIfMatch, readIfNoneMatch, type Match } from '../../schema/http/entity-tag.ts'
import { IDEMPOTENT, IdempotencyKeyInUse } from '../../schema/http/idempotency.ts'
import { IdParams, PreconditionHeaders } from '../../schema/http/params.ts'
import {
  BodyStalled, PayloadTooLarge, PreconditionFailed, RangeNotSatisfiable, UnsupportedMediaType,
} from '../../schema/http/errors.ts'
import { baseUrlOf } from '../../schema/options/public-url.ts'
import { examples, FAILURES, failures, HEADERS, NoContent, NotModified } from '../../schema/http/reply.ts'
import {
  isShown, ListUploads, PatchUpload, QuotaExceeded, Upload, UploadBytes, UploadElsewhere, UploadForm, UploadList,
  UploadNotFound, UploadRange, UploadRecord, UploadUsage,
} from '../../schema/uploads/upload.ts'
import { DownloadQuery } from '../../schema/uploads/upload-link.ts'
import { readRange } from './byte-range.ts'
import { evaluateConditions, rangeApplies, revalidate, REVALIDATED, sendNotModified } from '../http/conditional-request.ts'
import { createClaim, markReplayed } from '../http/idempotency-key.ts'
import { MERGE_PATCH, PATCH_TYPES, requirePatchType } from '../http/merge-patch.ts'
import { linkNextPage } from '../http/next-page.ts'
import { idOf } from '../http/params.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'
import { claimBody, type FormBody } from './upload-body.ts'
import { FORM_OVERHEAD_BYTES, parseForm, readForm, type ReadForm } from './upload-form.ts'
import { strictParameters } from '../http/strict-parameters.ts'
import { describeTag } from '../../plugins/http/docs.ts'
import { addVary } from '../../plugins/http/vary.ts'

const tags = ['uploads']
const security = [{ bearer: [] }]
// The tag of the bytes. Neither they nor their media type ever change, but their name may, which is in the response.
const tagOfBytes = ({ sha256, filename, renamedAt }: { sha256: string, filename: string, renamedAt: Date | null }) =>
  renamedAt === null ? `"${sha256}"` : combinedTag(['bytes', sha256, filename])
// Private uploads must not be stored anywhere: the users of a browser share its caches.
const NOT_STORED = 'private, no-store'
const DOWNLOAD = ['Accept-Ranges', 'Last-Modified', 'Content-Disposition']
const schemas = {
  create: {
    tags,
    security: [{ bearer: [] }],
    operationId: 'createUpload',
    [FAILURES]: examples(new IdempotencyKeyInUse()),
    summary: 'Upload a file',
    [IDEMPOTENT]: true,
    consumes: ['multipart/form-data'],
    body: UploadForm,
    response: { 200: Upload, ...failures(400, 401, 403, 408, 409, 410, 413, 415, 422, 507) },
  },
  list: {
    tags,
    operationId: 'listUploads',
    summary: 'List uploads, newest first, by default your own',
    querystring: ListUploads,
    [HEADERS]: Object.fromEntries([200, 304, 400, 401, 412, 500, 503].map((status) => [status, ['Preference-Applied']])),
    response: { 200: UploadList, 304: NotModified, ...failures(400, 401, 403, 412) },
  },
  usage: {
    tags,
    security: [{ bearer: [] }],
    operationId: 'getUploadUsage',
    summary: 'Read how much space your uploads take, and may take',
    response: { 200: UploadUsage, ...failures(401, 403) },
  },
  download: {
    tags,
    operationId: 'downloadUpload',
    summary: 'Download a file, or a range of it',
    params: IdParams,
    querystring: DownloadQuery,
    [HEADERS]: { 200: DOWNLOAD, 206: [...DOWNLOAD, 'Content-Range'], 304: DOWNLOAD, 416: ['Content-Range'] },
    response: {
      200: UploadBytes,
      206: UploadRange,
      304: NotModified,
      307: UploadElsewhere,
      ...failures(400, 401, 403, 404, 412, 416),
    },
  },
  record: {
    tags,
    operationId: 'getUpload',
    summary: 'Read the record of an upload',
    params: IdParams,
    response: { 200: UploadRecord, 304: NotModified, ...failures(401, 403, 404, 412) },
  },
  patch: {
    tags,
    security,
    operationId: 'updateUpload',
    summary: 'Change the record of an upload: absent members stay as they are',
    description: 'The entity tags of `If-Match` and `If-None-Match` are those of the record.',
    consumes: PATCH_TYPES,
    [HEADERS]: { 415: ['Accept-Patch'] },
    params: IdParams,
    headers: PreconditionHeaders,
    body: PatchUpload,
    response: { 200: UploadRecord, ...failures(400, 401, 403, 404, 412, 413, 415) },
  },
  delete: {
    tags,
    security,
    operationId: 'deleteUpload',
    summary: 'Delete an upload and its file',
    description: 'The entity tags of `If-Match` and `If-None-Match` are those of the record.',
    params: IdParams,
    headers: PreconditionHeaders,
    response: { 204: NoContent, ...failures(400, 401, 403, 404, 412) },
  },
}

interface Download {
  request: FastifyRequest
  reply: FastifyReply
  upload: UploadRow
  link: LiveUploadLink | undefined
  since: Mark
}

/** Adds the routes for uploading and downloading files (contract 5), and for their records (contract 13.1). */
const uploadRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherAccess: {
      actors, actorOf, allow, authenticate, callerOf, identifies, identifyQuietly, policy, readerOf,
      requireGranted, watchSession,
    },
    usherAudit: audit, usherUploads: uploads, usherOptions,
  } = app
  const { storage } = uploads
  const path = `${usherOptions.publicPath}/api/uploads`
  const { uploadMaxBytes: maxBytes, uploadIdleSeconds, uploadMinBytesPerSecond } = usherOptions
  const base = `${baseUrlOf(usherOptions)}/api/uploads`
  const pace = { idleMs: uploadIdleSeconds * 1000, minBytesPerPeriod: uploadMinBytesPerSecond * uploadIdleSeconds }
  const cutOff = createResponseCutOff(app)
  const claimKey = createClaim(app)
  describeTag(app, 'uploads', 'Files')
  const bodies = await registerMultipart(app)

  app.post('/uploads', { schema: schemas.create, onRequest: [...allow('uploads:create'), mustBeForm] }, onCreate)
  app.get('/uploads', {
    schema: { ...schemas.list, ...policy.securityOf('uploads:list', ['uploads:read-private']) },
    exposeHeadRoute: true,
    onRequest: identifies('uploads:list', 'uploads:read-private'),
    ...strictParameters(Object.keys(ListUploads.properties)),
    preValidation: authorizeList,
  }, onList)
  app.get('/uploads/usage', { schema: schemas.usage, exposeHeadRoute: true, onRequest: authenticate }, onUsage)
  app.get('/uploads/:id', {
    schema: { ...schemas.download, ...policy.securityOf('uploads:read') },
    exposeHeadRoute: true,
    onRequest: identifies('uploads:read'),
  }, onDownload)
  app.get('/uploads/:id/record', {
    schema: { ...schemas.record, ...policy.securityOf('uploads:read', ['uploads:read-private']) },
    exposeHeadRoute: true,
    onRequest: identifies('uploads:read', 'uploads:read-private'),
  }, onRecord)
  await app.register(async (app) => {
    addJsonParser(app, MERGE_PATCH)
    app.patch('/uploads/:id', {
      schema: schemas.patch,
      onRequest: [authenticate, requireGranted('uploads:update'), requirePatchType],
      preValidation: (request) => uploads.forbid(callerOf(request), 'uploads:update', idOf(request)),
    }, onPatch)
  })
  app.delete('/uploads/:id', {
    schema: schemas.delete,
    onRequest: [authenticate, requireGranted('uploads:delete')],
    preValidation: (request) => uploads.forbid(callerOf(request), 'uploads:delete', idOf(request)),
  }, onDelete)

  async function onCreate (request: RequestOf<typeof schemas.create>, reply: ReplyOf<typeof schemas.create>) {
    cutOff(reply)
    return storage.receive(() => create(request, reply))
  }

  async function create (request: RequestOf<typeof schemas.create>, reply: ReplyOf<typeof schemas.create>) {
    // Before the body is read, so that a repeated request does not send it while the first one is in progress.
    const claim = await claimKey(request)
    const caller = callerOf(request)
    const form: ReadForm<TemporaryFile> = { problems: new Map() }
    try {
      const limit = await findLimit(request, claim)
      await readForm(request, bodies.get(request)!, { ...limit, ...pace }, form, storage.write)
      const { file, ...texts } = parseForm(form)
      const { sha256, size } = file
      const performed = await claim.perform({ sha256, size, ...texts }, {
        operate: (key) => uploads.keep(caller, { ...file, ...texts }, { once: key }),
        restore: (stored) => withVisibility(restoreUpload(stored)),
      })
      markReplayed(reply, performed)
      const { result: upload } = performed
      if (upload.id !== file.id) await storage.discard(file)
      reply.header('etag', tagOfBytes({ ...upload, renamedAt: null }))
      return { fileUrl: `${base}/${upload.id}`, ...upload }
    } catch (error) {
      if (form.file) await storage.discard(form.file)
      // The server does not wait for the rest of the request (RFC 9110 15.5.9).
      if (error instanceof BodyStalled) reply.header('connection', 'close')
      throw error
    } finally {
      claim.release()
    }
  }

  // Returns the limit of the file. An upload that exceeds the quota by its declared length is rejected before its body
  // is read.
  async function findLimit (request: FastifyRequest, claim: Awaited<ReturnType<typeof claimKey>>): Promise<SizeLimit> {
    try {
      const limit = await storage.quota.limitOf(actorOf(request).id)
      if (Number(request.headers['content-length']) > limit.maxBytes + FORM_OVERHEAD_BYTES) throw limit.tooLarge()
      if (limit === storage.quota.usual || !await claim.hasResult()) return limit
    } catch (error) {
      if (!(error instanceof QuotaExceeded) || !await claim.hasResult()) throw error
    }
    // The request may be a repetition, which takes no more space. This is known once its body is read.
    return storage.quota.usual
  }

  async function onUsage (request: RequestOf<typeof schemas.usage>, reply: ReplyOf<typeof schemas.usage>) {
    const { bytes: quotaBytes, files: quotaFiles } = storage.quota.ofStatement
    const caller = callerOf(request)
    const usage = await storage.quota.usageOf(caller.getActor().id)
    await caller.confirm()
    reply.header('cache-control', 'no-store')
    return { ...usage, quotaBytes: quotaBytes || null, quotaFiles: quotaFiles || null }
  }

  async function onDownload (request: RequestOf<typeof schemas.download>, reply: ReplyOf<typeof schemas.download>) {
    // The address may have the secret of a link.
    reply.header('referrer-policy', 'no-referrer')
    const since = uploads.downloads.mark()
    const { params: { id }, query: { link: secret } } = request
    const { upload, link } = await uploads.getForDownload(readerOf(request), id, secret, () => identifyReader(request))
    const validators = { etag: tagOfBytes(upload), lastModified: upload.renamedAt ?? upload.createdAt }
    const status = evaluateConditions(request.headers, validators)
    if (status === 412) throw new PreconditionFailed()
    const size = Number(upload.size)
    const range = status === 200 && rangeApplies(request.headers, validators) ? readRange(request, size) : undefined
    if (range === 'unsatisfiable') {
      reply.header('content-range', `bytes */${size}`)
      throw new RangeNotSatisfiable()
    }
    const isSent = status === 200 && request.method === 'GET'
    const headers = {
      type: upload.mediaType === 'text/plain' ? 'text/plain; charset=utf-8' : upload.mediaType,
      disposition: contentDisposition(upload.filename, { type: isShown(upload.mediaType) ? 'inline' : 'attachment' }),
      // Caches must revalidate, because the upload is deleted with its owner. The entity tag makes that cheap.
      cacheControl: upload.isPrivate || link ? NOT_STORED : REVALIDATED,
    }
    const address = isSent && size > 0 ? await storage.addressOf(upload.id, headers) : undefined
    // Without a stream, Fastify would set `Content-Length: 0`.
    const bytes = isSent && address === undefined
      ? await storage.open({ id: upload.id, size }, clientNetworksOf(request), range)
      : Readable.from([])
    // A hook of the host may send another response instead.
    onceClosed(reply, () => bytes.destroy())
    cutOff(reply)
    if (isSent) requirePermission({ request, reply, upload, link, since })
    if (!link) await requireSession(request, reply, upload, isSent)
    if (address !== undefined) {
      // The address works for seconds only, so nobody may keep it.
      reply.headers({ 'cache-control': NOT_STORED, 'cross-origin-resource-policy': 'cross-origin' })
      return reply.redirect(address, 307)
    }
    reply.headers({
      'accept-ranges': 'bytes',
      etag: validators.etag,
      'last-modified': validators.lastModified.toUTCString(),
      'content-type': headers.type,
      'content-disposition': headers.disposition,
      'cache-control': headers.cacheControl,
      'content-security-policy': "sandbox; default-src 'none'",
      'cross-origin-resource-policy': 'cross-origin',
      'x-content-type-options': 'nosniff',
    })
    if (status === 304) return reply.code(304).send(bytes as never)
    reply.header('content-length', range ? range.end - range.start + 1 : size)
    if (range) reply.code(206 as never).header('content-range', `bytes ${range.start}-${range.end}/${size}`)
    return reply.send(bytes as never)
  }

  // Runs before the parameters are validated, because 403 comes before 400.
  async function authorizeList (request: FastifyRequest): Promise<void> {
    const { user } = request.query as { user?: unknown }
    if (user === undefined || typeof user === 'string') uploads.authorizeList(readerOf(request), user)
  }

  async function onList (request: RequestOf<typeof schemas.list>, reply: ReplyOf<typeof schemas.list>) {
    const { user, limit, after } = request.query
    const { rows, next } = await uploads.list(readerOf(request), { user, limit, after: after && decodeCursor(after) })
    const tags = rows.flatMap((upload) => [upload.id, tagOfUpload(upload)])
    const isCurrent = revalidate(request, reply, combinedTag(['uploads 1', base, `${next}`, ...tags]))
    linkNextPage(reply, path, { user, limit }, next && encodeCursor(next))
    return isCurrent ? sendNotModified(request, reply) : rows.map((upload) => showUpload(upload, base))
  }

  async function onRecord (request: RequestOf<typeof schemas.record>, reply: ReplyOf<typeof schemas.record>) {
    const upload = await uploads.get(readerOf(request), idOf(request))
    const isCurrent = revalidate(request, reply, tagOfUpload(upload))
    if (upload.isPrivate) reply.header('cache-control', NOT_STORED)
    return isCurrent ? sendNotModified(request, reply) : showUpload(upload, base)
  }

  async function onPatch (request: RequestOf<typeof schemas.patch>, reply: ReplyOf<typeof schemas.patch>) {
    const match = await matchOf(request)
    const upload = await uploads.update(callerOf(request), idOf(request), request.body, { match })
    reply.header('etag', tagOfUpload(upload))
    return showUpload(upload, base)
  }

  async function onDelete (request: RequestOf<typeof schemas.delete>, reply: ReplyOf<typeof schemas.delete>) {
    await uploads.delete(callerOf(request), idOf(request), { match: await matchOf(request) })
    return reply.code(204).send(null)
  }

  // Returns the versions that the upload may have for the preconditions to be true. A version that a client names in
  // `If-None-Match` never comes back, so a change after this look cannot make it false. What does not exist for the
  // caller is reported by the change.
  async function matchOf (request: FastifyRequest): Promise<Match> {
    const match = readIfMatch(request.headers['if-match'])
    const noneMatch = readIfNoneMatch(request.headers['if-none-match'])
    if (noneMatch === undefined) return match
    if (noneMatch === '*') return []
    const upload = await storage.find(idOf(request))
    return upload && permits(noneMatch, upload.rowVersion) ? [] : match
  }

  // Returns the caller, who is not identified yet if anyone may read public uploads.
  async function identifyReader (request: FastifyRequest): Promise<Caller> {
    if (!actors.in(request)) await identifyQuietly(request)
    return callerOf(request)
  }

  // Stops a download when the permission for it ends on any node. Throws `UploadNotFound` if it has ended already.
  function requirePermission ({ request, reply, upload, link, since }: Download): void {
    const reader = actors.in(request)
    const isReadByAnother = upload.isPrivate && !link && reader !== null && reader.id !== upload.userId
    let isAnswered = false
    let isOver = false
    const stop = () => {
      isOver = true
      if (isAnswered) reply.raw.destroy()
    }
    const mayReadPrivate = async () => {
      const caller = await identifyReader(request)
      if (!caller.allows('uploads:read-private', { ownerId: upload.userId! })) return false
      if (!reader && caller.actor) onceClosed(reply, watchSession(caller.actor, stop))
      return true
    }
    onceClosed(reply, uploads.downloads.watch({ upload, link, mayReadPrivate }, since, stop))
    if (isOver) throw new UploadNotFound()
    isAnswered = true
    if (isReadByAnother) audit.addRead(callerOf(request), upload.userId!)
  }

  // Checks the session of the reader again before the response, and during a download, which is cut off when the
  // session ends, but not when the token expires, because a large file may take longer.
  async function requireSession (
    request: FastifyRequest, reply: FastifyReply, { isPrivate }: UploadRow, isSent: boolean
  ): Promise<void> {
    if (isPrivate && policy.isOpen('uploads:read')) addVary(reply, 'Authorization')
    const reader = !isPrivate && policy.isOpen('uploads:read') ? null : actors.in(request)
    if (!reader) return
    await callerOf(request).confirm()
    if (isSent) onceClosed(reply, watchSession(reader, () => reply.raw.destroy()))
  }

  async function mustBeForm (request: FastifyRequest): Promise<void> {
    const { 'content-type': type = '', 'content-length': length } = request.headers
    if (!/^multipart\/form-data\s*(;|$)/i.test(type)) throw new UnsupportedMediaType('multipart/form-data')
    if (Number(length) > maxBytes + FORM_OVERHEAD_BYTES) throw new PayloadTooLarge()
  }
}

const withVisibility = ({ isPrivate, ...upload }: ReturnType<typeof restoreUpload>) =>
  ({ ...upload, visibility: visibilityOf(isPrivate) })

// Registers @fastify/multipart, without the parser that marks a request as multipart. The request is marked after
// `preValidation` instead: there the option `attachFieldsToBody` of a host, which may also register the plugin, would
// consume the body of a marked request. If the host has registered the plugin already, that registration is used, since
// a second one would fail. Its options do not matter, because every call of `parts` sets all of them. Returns the
// bodies of requests.
async function registerMultipart (app: FastifyInstance): Promise<WeakMap<FastifyRequest, FormBody>> {
  const bodies = new WeakMap<FastifyRequest, FormBody>()
  if (!app.hasRequestDecorator('parts')) {
    await app.register(fastifyMultipart)
    app.removeContentTypeParser('multipart/form-data')
  }
  app.addContentTypeParser('multipart/form-data', async (request: FastifyRequest, payload: IncomingMessage) => {
    const rejection = rejectionOfCoding(request, payload)
    if (rejection) throw rejection
    bodies.set(request, claimBody(request, payload))
  })
  app.addHook('preHandler', (request, _, done) => {
    request.isMultipart = () => true
    done()
  })
  return bodies
}

export default uploadRoutes
