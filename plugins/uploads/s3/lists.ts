import type { Element } from './documents.ts'
import { requireDocument, requireNumber, requireText, requireTime } from './proofs.ts'
import { InvalidAnswer, type StoreAnswer, type StoreRequest, type StoreRequests } from './requests.ts'

/** An object. Its name is its key without the prefix of the list. */
export interface ListedObject { readonly name: string, readonly size: number, readonly changedAt: number }

/** Some objects, and the time of the store. */
export interface ObjectPage { readonly objects: readonly ListedObject[], readonly now: number }

/** An upload of several parts that is not completed. */
export interface ListedUpload { readonly key: string, readonly uploadId: string, readonly begunAt: number }

/** A part that the store has. */
export interface Part { readonly number: number, readonly tag: string }

export interface ListOptions extends Pick<StoreRequest, 'isRepeated'> {
  /** How many a page has at most, by default as many as the store gives. */
  readonly limit?: number
}

const MAX_ENTRIES = 1000

type Query = Record<string, string>

/** Yields the objects under a prefix, with the time of the store, in pages. */
export async function * listObjects (
  store: StoreRequests, prefix: string, { limit = MAX_ENTRIES, isRepeated }: ListOptions = {}
): AsyncGenerator<ObjectPage, undefined> {
  for (let token: Query | undefined = {}; token !== undefined;) {
    const query: Query = { 'list-type': '2', prefix, 'max-keys': `${limit}`, ...token }
    const page = await store.send({ operation: 'list', method: 'GET', query, isRepeated }, (answer) => {
      const root = requireDocument(answer, 'ListBucketResult')
      const objects = root.all('Contents').map((element): ListedObject => ({
        name: requireKey(answer, element, prefix).slice(prefix.length),
        size: requireNumber(answer, element, 'Size'),
        changedAt: requireTime(answer, element, 'LastModified'),
      }))
      const next = requireNext(answer, root, query, { 'continuation-token': 'NextContinuationToken' })
      return { objects, now: timeOf(answer), next }
    })
    yield page
    token = page.next
  }
}

/** Yields the uploads of several parts under a prefix, with the time of the store, in pages. */
export async function * listUploads (
  store: StoreRequests, prefix: string, { limit = MAX_ENTRIES, isRepeated }: ListOptions = {}
): AsyncGenerator<{ uploads: ListedUpload[], now: number }> {
  for (let markers: Query | undefined = {}; markers !== undefined;) {
    const query: Query = { uploads: '', prefix, 'max-uploads': `${limit}`, ...markers }
    const page = await store.send({ operation: 'list', method: 'GET', query, isRepeated }, (answer) => {
      const root = requireDocument(answer, 'ListMultipartUploadsResult')
      const uploads = root.all('Upload').map((element): ListedUpload => ({
        key: requireKey(answer, element, prefix),
        uploadId: requireText(answer, element, 'UploadId'),
        begunAt: requireTime(answer, element, 'Initiated'),
      }))
      const next =
        requireNext(answer, root, query, { 'key-marker': 'NextKeyMarker' }, { 'upload-id-marker': 'NextUploadIdMarker' })
      return { uploads, now: timeOf(answer), next }
    })
    yield page
    markers = page.next
  }
}

/** Returns the parts of an upload, and when the last one arrived, in milliseconds since 1970. */
export async function listParts (
  store: StoreRequests, key: string, uploadId: string, { isRepeated }: ListOptions = {}
): Promise<{ parts: Part[], size: number, changedAt: number }> {
  const parts: Part[] = []
  let [size, changedAt] = [0, -Infinity]
  for (let marker: Query | undefined = { 'part-number-marker': '0' }; marker !== undefined;) {
    const query: Query = { uploadId, ...marker }
    const page = await store.send({ operation: 'list', method: 'GET', key, query, isRepeated }, (answer) => {
      const root = requireDocument(answer, 'ListPartsResult')
      const found = root.all('Part').map((element) => ({
        number: requireNumber(answer, element, 'PartNumber'),
        tag: requireText(answer, element, 'ETag'),
        size: requireNumber(answer, element, 'Size'),
        changedAt: requireTime(answer, element, 'LastModified'),
      }))
      return { found, next: requireNext(answer, root, query, { 'part-number-marker': 'NextPartNumberMarker' }) }
    })
    for (const { number, tag, ...part } of page.found) {
      parts.push({ number, tag })
      size += part.size
      changedAt = Math.max(changedAt, part.changedAt)
    }
    marker = page.next
  }
  return { parts: parts.sort((one, other) => one.number - other.number), size, changedAt }
}

// A store that ignores the prefix would have the objects of others cleaned up.
function requireKey (answer: StoreAnswer, element: Element, prefix: string): string {
  const key = requireText(answer, element, 'Key')
  if (!key.startsWith(prefix)) throw new InvalidAnswer(answer, 'with keys that were not asked for')
  return key
}

// Returns the parameters of the next page, or undefined after the last one. Throws `InvalidAnswer` if the document does
// not say which it is, or if the next page would be the same one.
function requireNext (
  answer: StoreAnswer, root: Element, query: Query, names: Query, optional: Query = {}
): Query | undefined {
  const isMore = requireText(answer, root, 'IsTruncated')
  if (isMore === 'false') return undefined
  if (isMore !== 'true') throw new InvalidAnswer(answer, 'without saying whether there is more')
  const next = Object.fromEntries([
    ...Object.entries(names).map(([name, element]) => [name, requireText(answer, root, element)] as const),
    ...Object.entries(optional).map(([name, element]) => [name, root.textOf(element) ?? ''] as const),
  ].filter(([, value]) => value !== ''))
  if (Object.entries(next).every(([name, value]) => query[name] === value)) {
    throw new InvalidAnswer(answer, 'with the same page as before')
  }
  return next
}

const timeOf = ({ headers }: StoreAnswer): number => Date.parse(headers.date ?? '') || Date.now()
