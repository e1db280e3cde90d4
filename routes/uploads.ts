import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import fastifyMultipart from '@fastify/multipart'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { create as contentDisposition } from 'content-disposition'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { restoreUpload } from '../db/uploads/uploads.ts'
import { onceClosed } from '../plugins/http/raw/connections.ts'
import { rejectionOfCoding } from '../plugins/http/content-coding.ts'
import { createResponseCutOff } from '../plugins/http/raw/response-cut-off.ts'
import type { SizeLimit } from '../plugins/uploads/quota.ts'
import type { TemporaryFile } from '../plugins/uploads/storage.ts'
import { IDEMPOTENT } from '../schema/http/idempotency.ts'
import { IdParams } from '../schema/http/params.ts'
import {
  BodyStalled, PayloadTooLarge, PreconditionFailed, RangeNotSatisfiable, UnsupportedMediaType,
} from '../schema/http/errors.ts'
import { baseUrlOf } from '../schema/options/public-url.ts'
import { failures, HEADERS, NotModified } from '../schema/http/reply.ts'
import {
  isShown, QuotaExceeded, Upload, UploadBytes, UploadForm, UploadRange, UploadUsage,
} from '../schema/uploads/upload.ts'
import { readRange } from './byte-range.ts'
import { evaluateConditions, rangeApplies, REVALIDATED } from './conditional-request.ts'
import { createClaim, markReplayed } from './idempotency.ts'
import type { ReplyOf, RequestOf } from './route-types.ts'
import { claimBody, type FormBody } from './upload-body.ts'
import { FORM_OVERHEAD_BYTES, parseForm, readForm, type ReadForm } from './upload-form.ts'
import { describeTag } from '../plugins/http/docs.ts'

const tags = ['uploads']
// The tag of the bytes. They never change, and neither do their name and media type.
const tagOf = ({ sha256 }: { sha256: string }): string => `"${sha256}"`
const DOWNLOAD = ['Accept-Ranges', 'Last-Modified', 'Content-Disposition']
const schemas = {
  create: {
    tags,
    security: [{ bearer: [] }],
    summary: 'Upload a file',
    [IDEMPOTENT]: true,
    consumes: ['multipart/form-data'],
    body: UploadForm,
    response: { 200: Upload, ...failures(400, 401, 403, 408, 409, 410, 413, 415, 422, 507) },
  },
  usage: {
    tags,
    security: [{ bearer: [] }],
    summary: 'Read how much space your uploads take, and may take',
    response: { 200: UploadUsage, ...failures(401, 403) },
  },
  download: {
    tags,
    summary: 'Download a file, or a range of it',
    params: IdParams,
    [HEADERS]: { 200: DOWNLOAD, 206: [...DOWNLOAD, 'Content-Range'], 304: DOWNLOAD, 416: ['Content-Range'] },
    response: { 200: UploadBytes, 206: UploadRange, 304: NotModified, ...failures(401, 403, 404, 412, 416) },
  },
}

/** Adds the routes for uploading and downloading files (contract 5). */
const uploadRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherAuth: { actors, actorOf, allow, authenticate, callerOf, confirmReader, identifies, policy, watchSession },
    usherUploads: uploads, usherOptions,
  } = app
  const { storage } = uploads
  const { uploadMaxBytes: maxBytes, uploadIdleSeconds, uploadMinBytesPerSecond } = usherOptions
  const base = `${baseUrlOf(usherOptions)}/api/uploads`
  const pace = { idleMs: uploadIdleSeconds * 1000, minBytesPerPeriod: uploadMinBytesPerSecond * uploadIdleSeconds }
  const cutOff = createResponseCutOff(app)
  const claimKey = createClaim(app)
  describeTag(app, 'uploads', 'Files')
  const bodies = await registerMultipart(app)

  app.post('/uploads', { schema: schemas.create, onRequest: [...allow('uploads:create'), mustBeForm] }, onCreate)
  app.get('/uploads/usage', { schema: schemas.usage, exposeHeadRoute: true, onRequest: authenticate }, onUsage)
  app.get('/uploads/:id', {
    schema: { ...schemas.download, ...policy.securityOf('uploads:read') },
    exposeHeadRoute: true,
    onRequest: identifies('uploads:read'),
  }, onDownload)

  async function onCreate (request: RequestOf<typeof schemas.create>, reply: ReplyOf<typeof schemas.create>) {
    cutOff(reply)
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
        operate: (key) => uploads.keep(caller, { ...file, ...texts }, key),
        restore: restoreUpload,
      })
      markReplayed(reply, performed)
      const { result: upload } = performed
      if (upload.id !== file.id) await storage.discard(file)
      reply.header('etag', tagOf(upload))
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
    const actor = actorOf(request)
    const usage = await storage.quota.usageOf(actor.id)
    await confirmReader(actor, request.socket)
    reply.header('cache-control', 'no-store')
    return { ...usage, quotaBytes: quotaBytes || null, quotaFiles: quotaFiles || null }
  }

  async function onDownload (request: RequestOf<typeof schemas.download>, reply: ReplyOf<typeof schemas.download>) {
    const upload = await uploads.get(callerOf(request), request.params.id)
    const validators = { etag: tagOf(upload), lastModified: upload.createdAt }
    const status = evaluateConditions(request.headers, validators)
    if (status === 412) throw new PreconditionFailed()
    const size = Number(upload.size)
    const range = status === 200 && rangeApplies(request.headers, validators) ? readRange(request, size) : undefined
    if (range === 'unsatisfiable') {
      reply.header('content-range', `bytes */${size}`)
      throw new RangeNotSatisfiable()
    }
    const isSent = status === 200 && request.method === 'GET'
    // Without a stream, Fastify would set `Content-Length: 0`.
    const bytes = isSent ? await storage.open({ id: upload.id, size }, range) : Readable.from([])
    // A hook of the host may send another response instead.
    onceClosed(reply, () => bytes.destroy())
    cutOff(reply)
    await requireSession(request, reply, isSent)
    reply.headers({
      'accept-ranges': 'bytes',
      etag: validators.etag,
      'last-modified': validators.lastModified.toUTCString(),
      'content-type': upload.mediaType === 'text/plain' ? 'text/plain; charset=utf-8' : upload.mediaType,
      'content-disposition': contentDisposition(
        upload.filename, { type: isShown(upload.mediaType) ? 'inline' : 'attachment' }
      ),
      // Caches must revalidate, because the upload is deleted with its owner. The entity tag makes that cheap.
      'cache-control': REVALIDATED,
      'content-security-policy': "sandbox; default-src 'none'",
      'cross-origin-resource-policy': 'cross-origin',
      'x-content-type-options': 'nosniff',
    })
    if (status === 304) return reply.code(304).send(bytes as never)
    reply.header('content-length', range ? range.end - range.start + 1 : size)
    if (range) reply.code(206 as never).header('content-range', `bytes ${range.start}-${range.end}/${size}`)
    return reply.send(bytes as never)
  }

  // Checks the session of the reader again before the response, and during a download, which is cut off when the
  // session ends, but not when the token expires, because a large file may take longer.
  async function requireSession (request: FastifyRequest, reply: FastifyReply, isSent: boolean): Promise<void> {
    const reader = policy.isOpen('uploads:read') ? null : actors.in(request)
    if (!reader) return
    await confirmReader(reader, request.socket)
    if (isSent) onceClosed(reply, watchSession(reader, () => reply.raw.destroy()))
  }

  async function mustBeForm (request: FastifyRequest): Promise<void> {
    const { 'content-type': type = '', 'content-length': length } = request.headers
    if (!/^multipart\/form-data\s*(;|$)/i.test(type)) throw new UnsupportedMediaType('multipart/form-data')
    if (Number(length) > maxBytes + FORM_OVERHEAD_BYTES) throw new PayloadTooLarge()
  }
}

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
