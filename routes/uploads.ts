import type { IncomingHttpHeaders } from 'node:http'
import fastifyMultipart from '@fastify/multipart'
import { send, type ErrorSendResult } from '@fastify/send'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { create as contentDisposition } from 'content-disposition'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { createResponseCutOff } from '../plugins/response-cut-off.ts'
import type { TemporaryFile } from '../plugins/uploads/storage.ts'
import {
  BodyStalled, PayloadTooLarge, PreconditionFailed, RangeNotSatisfiable, UnsupportedMediaType, UploadNotFound,
} from '../schema/errors.ts'
import { failures } from '../schema/reply.ts'
import { isShown, NotModified, Upload, UploadBytes, UploadForm, UploadParams, UploadRange } from '../schema/upload.ts'
import { checkForm, ENVELOPE_OCTETS, readForm, type ReadForm } from './upload-form.ts'

/** Adds the routes for uploading and downloading files (contract 5). */
const uploads: FastifyPluginAsyncTypebox = async (app) => {
  const { usherAuth: { actorOf, allow, confirm }, usherStorage: storage, usherOptions } = app
  const { prefix, publicUrl = '', uploadMaxBytes: maxBytes, uploadIdleSeconds, uploadMinBytesPerSecond } = usherOptions
  const base = `${publicUrl.replace(/\/+$/, '')}${prefix}/api/uploads`
  const limits = { maxBytes, idleMs: uploadIdleSeconds * 1000, minBytesPerPeriod: uploadMinBytesPerSecond * uploadIdleSeconds }
  const tags = ['uploads']
  const cutOff = createResponseCutOff(app)

  // If the host has registered @fastify/multipart, that registration is used. Its options do not matter, because every call of
  // `parts` sets all of them.
  if (!app.hasRequestDecorator('parts')) {
    await app.register(fastifyMultipart)
    app.removeContentTypeParser('multipart/form-data')
  }
  // The parser of @fastify/multipart only marks a request as multipart. Here the handler marks it instead. A host's
  // `attachFieldsToBody` checks the mark before the handler runs, and so does not consume the body.
  app.addContentTypeParser('multipart/form-data', (_, __, done) => done(null))

  app.post('/uploads', {
    onRequest: [...allow('uploads:create'), mustBeForm],
    // The schema is for the reference. `checkForm` validates the form once it has been read.
    validatorCompiler: () => () => true,
    schema: {
      tags,
      security: [{ bearer: [] }],
      summary: 'Upload a file',
      consumes: ['multipart/form-data'],
      body: UploadForm,
      response: { 200: Upload, ...failures(400, 401, 403, 408, 413, 415, 507) },
    },
  }, async (request, reply) => {
    request.isMultipart = () => true
    cutOff(reply.raw)
    const form: ReadForm<TemporaryFile> = { problems: new Map() }
    try {
      await readForm(request, limits, form, storage.write)
      checkForm(form)
      const upload = { ...form.file!, filename: form.filename!, description: form.description as string }
      const actor = actorOf(request)
      await storage.keep({ ...upload, userId: actor.id }, () => confirm(actor, request.socket))
      return { fileUrl: `${base}/${upload.id}`, ...upload }
    } catch (error) {
      if (form.file) await storage.discard(form.file)
      // The server does not wait for the rest of the request (RFC 9110 15.5.9).
      if (error instanceof BodyStalled) reply.header('connection', 'close')
      throw error
    }
  })

  app.get('/uploads/:id', {
    exposeHeadRoute: true,
    schema: {
      tags,
      summary: 'Download a file, or a range of it',
      params: UploadParams,
      response: { 200: UploadBytes, 206: UploadRange, 304: NotModified, ...failures(404, 412, 416) },
    },
  }, async (request, reply) => {
    const { id, sha256, filename, mediaType } = await storage.get(request.params.id)
    const etag = `"${sha256}"`
    cutOff(reply.raw)
    const { statusCode, headers, stream } = await sendFile(request, reply, id, etag)
    return reply.code(statusCode as 200).headers({
      ...headers,
      etag,
      'content-type': mediaType === 'text/plain' ? 'text/plain; charset=utf-8' : mediaType,
      'content-disposition': contentDisposition(filename, { type: isShown(mediaType) ? 'inline' : 'attachment' }),
      // Caches must revalidate, because the upload is deleted with its owner. The entity tag makes that cheap.
      'cache-control': 'no-cache',
      'content-security-policy': "sandbox; default-src 'none'",
      'cross-origin-resource-policy': 'cross-origin',
      'x-content-type-options': 'nosniff',
    }).send(stream as never)
  })

  async function sendFile (request: FastifyRequest, reply: FastifyReply, id: string, etag: string) {
    const translated = { method: request.method, headers: translateConditions(request.headers, etag) }
    const options = { root: storage.folder, etag: false, cacheControl: false, contentType: false, index: false } as const
    const result = await send(translated as never, id, options)
    if (result.type === 'error') throw errorOf(result, request, reply)
    return result
  }

  async function mustBeForm (request: FastifyRequest): Promise<void> {
    const { 'content-type': type = '', 'content-length': length } = request.headers
    if (!/^multipart\/form-data\s*(;|$)/i.test(type)) throw new UnsupportedMediaType('multipart/form-data')
    if (Number(length) > maxBytes + ENVELOPE_OCTETS) throw new PayloadTooLarge()
  }
}

// @fastify/send only knows entity tags that it computes itself, so conditions on Usher's entity tag are replaced by equivalent
// ones without a tag. `cache-control` is dropped: @fastify/send would never respond with 304 to `no-cache`, which is meant for
// caches and which browsers send with a `fetch` that revalidates by itself.
function translateConditions (original: IncomingHttpHeaders, etag: string): IncomingHttpHeaders {
  const { 'if-range': ifRange, 'cache-control': _, ...headers } = original
  const tags = (field: string | undefined) => field?.split(',').map((tag) => tag.trim())
  if (tags(headers['if-match'])?.includes(etag)) headers['if-match'] = '*'
  if (tags(headers['if-none-match']?.replaceAll('W/', ''))?.includes(etag)) headers['if-none-match'] = '*'
  return ifRange === undefined || ifRange === etag ? headers : { ...headers, 'if-range': ifRange }
}

function errorOf ({ statusCode, headers, metadata }: ErrorSendResult, request: FastifyRequest, reply: FastifyReply): Error {
  switch (statusCode) {
    case 404:
      request.log.error({ err: metadata.error }, 'The file of an upload is missing')
      return new UploadNotFound()
    case 412: return new PreconditionFailed()
    case 416:
      reply.header('content-range', headers['Content-Range'])
      return new RangeNotSatisfiable()
    default: return metadata.error
  }
}

export default uploads
