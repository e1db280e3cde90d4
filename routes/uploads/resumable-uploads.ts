import type { IncomingMessage } from 'node:http'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ResumableUploadRow } from '../../db/uploads/resumable-uploads.ts'
import type { UploadRow } from '../../db/uploads/uploads.ts'
import { rejectionOfCoding } from '../../plugins/http/content-coding.ts'
import { hasBody } from '../../plugins/http/raw/body-deadline.ts'
import { onceClosed } from '../../plugins/http/raw/connections.ts'
import { createResponseCutOff } from '../../plugins/http/raw/response-cut-off.ts'
import { forbidStoring } from '../../plugins/http/requests.ts'
import { showUpload } from '../../plugins/uploads/show-upload.ts'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import { BodyStalled, InvalidInput, PayloadTooLarge, UnsupportedMediaType } from '../../schema/http/errors.ts'
import { IDEMPOTENT, IdempotencyKeyInUse } from '../../schema/http/idempotency.ts'
import { IdParams } from '../../schema/http/params.ts'
import { examples, FAILURES, failures, HEADERS, NoContent } from '../../schema/http/reply.ts'
import { baseUrlOf } from '../../schema/options/public-url.ts'
import {
  AppendHeaders, CHECKSUM_ALGORITHMS, CreationHeaders, OFFSET_TYPE, readChecksum, readMetadata, readNumber,
  ResumableHeaders, ResumableUpload, ResumableUploadList, TUS_EXTENSIONS, TUS_VERSION, TusVersionUnsupported,
  UploadOffsetConflict,
} from '../../schema/uploads/resumable-upload.ts'
import { Upload, UploadFile } from '../../schema/uploads/upload.ts'
import { createOnce, keyOf } from '../http/idempotency-key.ts'
import { idOf } from '../http/params.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'
import { claimBody, receiveBody, type ReceivedBody } from './upload-body.ts'

const tags = ['uploads']
const security = [{ bearer: [] }]
const TUS = ['Tus-Resumable']
// Every response says which version is spoken, and that to another version which one it is.
const headersOf = (statuses: readonly number[], others: Record<number, string[]>) => Object.fromEntries(
  [...statuses, 400, 401, 403, 408, 409, 410, 412, 413, 415, 422, 500, 503].map((status) =>
    [status, [...TUS, ...status === 412 ? ['Tus-Version'] : [], ...others[status] ?? []]])
)
const STATE = ['Upload-Offset', 'Upload-Length', 'Upload-Expires']
const PROGRESS = ['Upload-Offset', 'Upload-Expires']
const schemas = {
  options: {
    tags,
    operationId: 'getResumableUploadSupport',
    summary: 'Get what resumable uploads support',
    [HEADERS]: headersOf([204], {
      204: ['Tus-Version', 'Tus-Extension', 'Tus-Checksum-Algorithm', 'Tus-Max-Size'],
    }),
    response: { 204: NoContent, ...failures() },
  },
  create: {
    tags,
    security,
    operationId: 'createResumableUpload',
    [FAILURES]: examples(new IdempotencyKeyInUse()),
    summary: 'Begin a resumable upload (tus 1.0)',
    description: 'The bytes follow with PATCH. The first of them may be the body of this request.',
    [IDEMPOTENT]: true,
    consumes: [OFFSET_TYPE],
    headers: CreationHeaders,
    body: UploadFile,
    [HEADERS]: headersOf([201, 423, 429, 460, 507], { 201: PROGRESS }),
    response: {
      201: ResumableUpload, ...failures(400, 401, 403, 408, 409, 410, 412, 413, 415, 422, 423, 429, 460, 507),
    },
  },
  list: {
    tags,
    security,
    operationId: 'listResumableUploads',
    summary: 'List your unfinished uploads, newest first',
    headers: ResumableHeaders,
    [HEADERS]: headersOf([200], {}),
    response: { 200: ResumableUploadList, ...failures(401, 403, 412) },
  },
  get: {
    tags,
    security,
    operationId: 'getResumableUpload',
    summary: 'Read how far a resumable upload is; HEAD is that of tus',
    params: IdParams,
    headers: ResumableHeaders,
    [HEADERS]: headersOf([200, 404], { 200: [...STATE, 'Upload-Metadata', 'Content-Location'] }),
    response: { 200: ResumableUpload, ...failures(401, 403, 404, 412) },
  },
  append: {
    tags,
    security,
    operationId: 'continueResumableUpload',
    [FAILURES]: examples(new UploadOffsetConflict()),
    summary: 'Add bytes to a resumable upload; the response to the last of them is that of an upload',
    consumes: [OFFSET_TYPE],
    params: IdParams,
    headers: AppendHeaders,
    body: UploadFile,
    [HEADERS]: headersOf([200, 204, 404, 423, 460, 507], {
      200: [...PROGRESS, 'Content-Location'], 204: PROGRESS,
    }),
    response: {
      200: Upload, 204: NoContent, ...failures(400, 401, 403, 404, 408, 409, 412, 413, 415, 422, 423, 460, 507),
    },
  },
  delete: {
    tags,
    security,
    operationId: 'deleteResumableUpload',
    summary: 'Give up a resumable upload, which removes its bytes',
    description: 'Once the upload is complete, only its state is removed. The upload itself stays.',
    params: IdParams,
    headers: ResumableHeaders,
    [HEADERS]: headersOf([204, 404], {}),
    response: { 204: NoContent, ...failures(401, 403, 404, 412) },
  },
}

/** Adds the routes for uploads that arrive in several requests, by tus 1.0 (contract 13.5). */
const resumableUploadRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherAccess: { actorOf, allow, callerOf, watchSession }, usherUploads: { resumable }, usherOptions,
  } = app
  const { uploadMaxBytes, uploadIdleSeconds, uploadMinBytesPerSecond } = usherOptions
  const pace = { idleMs: uploadIdleSeconds * 1000, minBytesPerPeriod: uploadMinBytesPerSecond * uploadIdleSeconds }
  const base = `${baseUrlOf(usherOptions)}/api/uploads`
  const path = `${usherOptions.publicPath}/api/uploads`
  const once = createOnce(app)
  const cutOff = createResponseCutOff(app)
  const bodies = new WeakMap<FastifyRequest, ReceivedBody>()
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(OFFSET_TYPE, async (request: FastifyRequest, payload: IncomingMessage) => {
    const rejection = rejectionOfCoding(request, payload)
    if (rejection) throw rejection
    const body = claimBody(request, payload)
    bodies.set(request, receiveBody(body, pace))
  })
  app.addHook('onRequest', (_, reply, done) => {
    reply.header('tus-resumable', TUS_VERSION)
    done()
  })
  forbidStoring(app)
  const allowed = [...allow('uploads:create'), requireVersion]

  app.options('/uploads/resumable', { schema: schemas.options }, onOptions)
  app.post('/uploads/resumable', { schema: schemas.create, onRequest: [...allowed, requireOffsetType] }, onCreate)
  app.get('/uploads/resumable', { schema: schemas.list, exposeHeadRoute: true, onRequest: allowed }, onList)
  app.get('/uploads/resumable/:id', { schema: schemas.get, exposeHeadRoute: true, onRequest: allowed }, onGet)
  app.patch('/uploads/resumable/:id', {
    schema: schemas.append, onRequest: [...allowed, requireOffsetType],
  }, onAppend)
  app.delete('/uploads/resumable/:id', { schema: schemas.delete, onRequest: allowed }, onDelete)

  async function onOptions (_: FastifyRequest, reply: ReplyOf<typeof schemas.options>) {
    return reply.code(204).headers({
      'tus-version': TUS_VERSION,
      'tus-extension': TUS_EXTENSIONS,
      'tus-checksum-algorithm': CHECKSUM_ALGORITHMS.join(),
      'tus-max-size': uploadMaxBytes,
    }).send(null)
  }

  async function onCreate (request: RequestOf<typeof schemas.create>, reply: ReplyOf<typeof schemas.create>) {
    const caller = callerOf(request)
    const { length, metadata, checksum } = readCreation(request)
    let isNew = false
    const created = await once<ResumableUploadRow>(request, reply, { content: { length, metadata } }, {
      operate: async (key) => {
        const row = await resumable.create(caller, { length, metadata }, key)
        isNew = true
        return row
      },
      restore: ({ recordId }) => resumable.get(caller, recordId!),
    })
    const { id } = created
    const body = bodies.get(request)
    if (isNew && (length === 0 || (body && hasBody(request.raw)))) {
      try {
        await receive(request, reply, (incoming) => resumable.append(caller, id, 0, incoming, checksum))
      } catch (error) {
        // Its address was never told. With a key, the client can ask for it again.
        if (keyOf(request) === undefined) await resumable.delete(caller, id).catch(() => {})
        throw error
      }
    }
    const state = await resumable.get(caller, id)
    setProgress(reply, { offset: state.received, expiresAt: state.expiresAt })
    return reply.code(201).header('location', `${path}/resumable/${id}`).send(show(state))
  }

  async function onList (request: RequestOf<typeof schemas.list>) {
    const rows = await resumable.list(callerOf(request))
    return rows.map((row) => show({ ...row, upload: null }))
  }

  async function onGet (request: RequestOf<typeof schemas.get>, reply: ReplyOf<typeof schemas.get>) {
    const state = await resumable.get(callerOf(request), idOf(request))
    setProgress(reply, { offset: state.received, expiresAt: state.expiresAt })
    reply.header('upload-length', state.length)
    if (state.metadata !== '') reply.header('upload-metadata', state.metadata)
    if (state.upload) reply.header('content-location', `${path}/${state.upload.id}/record`)
    return show(state)
  }

  async function onAppend (request: RequestOf<typeof schemas.append>, reply: ReplyOf<typeof schemas.append>) {
    const caller = callerOf(request)
    const offset = readNumber('Upload-Offset', request.headers['upload-offset'])
    const checksum = readChecksum(request.headers['upload-checksum'])
    const state = await resumable.get(caller, idOf(request))
    if (Number(request.headers['content-length'] ?? 0) > state.length - offset) throw new PayloadTooLarge()
    const progress = await receive(request, reply, (incoming) =>
      resumable.append(caller, state.id, offset, incoming, checksum))
    setProgress(reply, progress)
    const { upload } = progress
    if (!upload) return reply.code(204).send(null)
    reply.headers({ 'content-location': `${path}/${upload.id}/record`, etag: `"${upload.sha256}"` })
    return { fileUrl: `${base}/${upload.id}`, ...upload }
  }

  async function onDelete (request: RequestOf<typeof schemas.delete>, reply: ReplyOf<typeof schemas.delete>) {
    await resumable.delete(callerOf(request), idOf(request))
    return reply.code(204).send(null)
  }

  // Passes the body on, until the session of the client ends.
  async function receive<Result> (
    request: FastifyRequest, reply: FastifyReply, append: (body: ReceivedBody) => Promise<Result>
  ): Promise<Result> {
    const body = bodies.get(request) ?? receiveBody(undefined, pace)
    cutOff(reply)
    const unwatch = watchSession(actorOf(request), () => body.stop(new InvalidToken()))
    onceClosed(reply, unwatch)
    try {
      return await append(body)
    } catch (error) {
      // The server does not wait for the rest of the request (RFC 9110 15.5.9).
      if (error instanceof BodyStalled) reply.header('connection', 'close')
      throw error
    } finally {
      unwatch()
      body.release()
    }
  }

  function readCreation ({ headers, raw }: FastifyRequest) {
    const { 'upload-length': size, 'upload-metadata': metadata = '', 'upload-checksum': given } = headers
    if ('upload-defer-length' in headers) throw new InvalidInput('Upload-Defer-Length is not supported')
    if ('upload-concat' in headers) throw new InvalidInput('Upload-Concat is not supported')
    const length = readNumber('Upload-Length', size)
    if (typeof metadata !== 'string') throw new InvalidInput('Upload-Metadata must be given once')
    readMetadata(metadata)
    if (length > uploadMaxBytes || Number(raw.headers['content-length'] ?? 0) > length) throw new PayloadTooLarge()
    return { length, metadata, checksum: readChecksum(given) }
  }

  const show = ({ metadata, received, upload, ...row }: ResumableUploadRow & { upload: UploadRow | null }) => ({
    id: row.id,
    offset: received,
    length: row.length,
    ...readMetadata(metadata),
    createdAt: new Date(row.createdAt),
    expiresAt: new Date(row.expiresAt),
    upload: upload && showUpload(upload, base),
  })
}

function setProgress (reply: FastifyReply, { offset, expiresAt }: { offset: number, expiresAt: Date }): void {
  reply.headers({ 'upload-offset': offset, 'upload-expires': new Date(expiresAt).toUTCString() })
}

async function requireVersion ({ headers }: FastifyRequest, reply: FastifyReply): Promise<void> {
  if (headers['tus-resumable'] === TUS_VERSION) return
  reply.header('tus-version', TUS_VERSION)
  throw new TusVersionUnsupported()
}

async function requireOffsetType ({ headers, raw, method }: FastifyRequest): Promise<void> {
  const type = headers['content-type']?.split(';', 1)[0]!.trim().toLowerCase()
  if (type === OFFSET_TYPE || (method === 'POST' && !hasBody(raw))) return
  throw new UnsupportedMediaType(OFFSET_TYPE)
}

export default resumableUploadRoutes
