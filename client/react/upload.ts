/// <reference lib="dom" />
import { unwrap, type components, type UsherClient } from '../index.ts'
import { readError } from '../error.ts'
import { createKey } from '../platform.ts'
import { repeat } from '../retry.ts'

export interface UploadOptions {
  /** Default: that of the file. */
  filename?: string
  description?: string
  /** Default: `public`, as in the API. */
  visibility?: 'public' | 'private'
  /** Gives up the upload. */
  signal?: AbortSignal
  /** Is called with the part that is sent, from 0 to 1. */
  onProgress?: (part: number) => void
}

const PATH = '/api/uploads'

/** Uploads a file. A lost response is repeated, and the file is stored once. Throws an `UsherError`. */
export async function uploadFile (
  client: UsherClient, file: Blob, options: UploadOptions = {}
): Promise<components['schemas']['UploadRecord']> {
  const { filename = (file as Partial<File>).name ?? 'file', description = '', visibility, signal, onProgress } = options
  const form = new FormData()
  form.set('description', description)
  if (visibility) form.set('visibility', visibility)
  form.set('file', file, filename)
  // Only this tells what is sent. Without a browser, there is none.
  const isWatched = onProgress && typeof XMLHttpRequest === 'function'
  const response = isWatched
    ? await sendWatched(client, form, onProgress, signal ?? new AbortController().signal)
    : await client.fetch(PATH, { method: 'POST', body: form, ...signal && { signal } })
  if (!response.ok) throw await readError(response)
  const { id } = await response.json() as components['schemas']['Upload']
  return unwrap(client.get('/api/uploads/{id}/record', { params: { path: { id } } }))
}

// As `client.fetch` does it: with the token, which is renewed once, and with a key, so that it can be repeated.
function sendWatched (
  client: UsherClient, form: FormData, onProgress: (part: number) => void, signal: AbortSignal
): Promise<Response> {
  const key = createKey()
  return repeat(async () => {
    for (let isRenewed = false; ; isRenewed = true) {
      const token = await client.session.token()
      const headers = { 'Idempotency-Key': key, ...token !== undefined && { Authorization: `Bearer ${token}` } }
      const response = await sendOnce(`${client.baseUrl}${PATH}`, headers, form, onProgress, signal)
      if (response.status !== 401 || isRenewed || !await client.session.renew(token)) return response
    }
  }, {}, signal)
}

function sendOnce (
  url: string, headers: Record<string, string>, body: FormData, onProgress: (part: number) => void, signal: AbortSignal
): Promise<Response> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const request = new XMLHttpRequest()
    const abort = () => request.abort()
    signal.addEventListener('abort', abort)
    request.open('POST', url)
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)
    request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0)
    request.onload = () => {
      const retryAfter = request.getResponseHeader('Retry-After')
      resolve(new Response(request.responseText, {
        status: request.status, headers: retryAfter === null ? {} : { 'Retry-After': retryAfter },
      }))
    }
    request.onerror = () => reject(new TypeError('The upload was interrupted'))
    request.onabort = () => reject(signal.reason)
    request.onloadend = () => signal.removeEventListener('abort', abort)
    request.send(body)
  })
}
