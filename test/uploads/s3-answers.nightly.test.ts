import { randomBytes, randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import type { SizedRange, StorageBackend } from '../../plugins/uploads/backend.ts'
import { readDocument } from '../../plugins/uploads/s3/documents.ts'
import { createS3 } from '../../plugins/uploads/s3/index.ts'
import { PART_BYTES } from '../../plugins/uploads/s3/writing.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import { StorageFailed, StorageUnavailable } from '../../schema/uploads/upload.ts'
import { createUsher } from '../helpers/app.ts'
import { slow } from '../helpers/deadlines.ts'
import { startFakeS3, type FakeRequest, type Fault } from '../helpers/fake-s3.ts'
import { openSql } from '../helpers/sql.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'
import { fieldPart, filePart, leftoversInBucket, post, upload } from '../helpers/uploads.ts'

// Every kind of request to a store gets every kind of answer that proves nothing, once and always, before and after the
// store has done what was asked. What is acknowledged must be there, and what is not must be reported.

const PAGE = '<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body><p>Log in<br></body></html>'
const XMLNS = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
const ERROR = '<Code>InternalError</Code><Message>We encountered an internal error.</Message>'
const BYTES = Buffer.from('the bytes of a file')

interface Answer {
  /** Answers with a success. `name` is that of the document that is expected. */
  readonly send: (response: ServerResponse, name: string) => unknown
  /** Whether it reaches the node as a success: then the store is asked whether it has done it. */
  readonly isSuccess: boolean
}

const success = (body: (name: string) => string, headers: Record<string, string> = {}, status = 200): Answer => ({
  send: (response, name) => response.writeHead(status, headers).end(body(name)), isSuccess: true,
})
const failure = (send: Answer['send']): Answer => ({ send, isSuccess: false })

const html = { 'content-type': 'text/html' }
const begun = (name: string) =>
  `<?xml version="1.0"?>\n<${name} ${XMLNS}><Key>k</Key><ETag>"1"</ETag><UploadId>2</UploadId><IsTruncated>false</IsTruncated>`
const answers: Readonly<Record<string, Answer>> = {
  'an empty body': success(() => ''),
  'an empty body and 202': success(() => '', {}, 202),
  'white space': success(() => ' \n\t '),
  'an HTML page': success(() => PAGE, html),
  'an HTML page with an ETag': success(() => PAGE, { ...html, etag: '"page"' }),
  'an XHTML page': success(() => '<html xmlns="http://www.w3.org/1999/xhtml"><body/></html>', html),
  JSON: success(() => '{"ok":true}', { 'content-type': 'application/json' }),
  'another document': success(() => `<ListAllMyBucketsResult ${XMLNS}><IsTruncated>false</IsTruncated></ListAllMyBucketsResult>`),
  'a document without content': success((name) => `<${name} ${XMLNS}></${name}>`),
  'a document that is cut off': success(begun),
  'a tag that is cut off': success((name) => `${begun(name)}</${name.slice(0, -3)}`),
  'an error': failure((response) => response.writeHead(200).end(`<?xml version="1.0"?>\n<Error>${ERROR}</Error>`)),
  'an error with a namespace': failure((response) => response.writeHead(200).end(`<Error ${XMLNS}>${ERROR}</Error>`)),
  'an error after a comment': failure((response) =>
    response.writeHead(200).end(`<?xml version="1.0"?><!-- sorry -->\n<Error>${ERROR}</Error>`)),
  'a body that is cut off': failure((response, name) => {
    response.writeHead(200, { 'content-length': 1000, etag: '"1"' }).write(begun(name), () => response.socket!.destroy())
  }),
  'a head that is cut off': failure((response) => response.socket!.end('HTTP/1.1 200 OK\r\nETag: "1')),
  'no HTTP': failure((response) => response.socket!.end('220 mail.example.com ESMTP\r\n')),
  'another protocol': failure((response) =>
    response.socket!.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')),
  nothing: failure((response) => response.socket!.end()),
}

/** The answers to requests that have no document, and say by a tag, or by 204, what was done. */
const withoutDocument = Object.keys(answers)
/** For HEAD, which has no body: what there is without one. */
const ofHead = ['an empty body', 'an HTML page', 'a head that is cut off', 'no HTTP', 'another protocol', 'nothing']

/** Starts a store, and a backend that uses it. Faults are set by the id of an upload in the key. */
async function open (t: Test) {
  const store = await startFakeS3(t)
  const options = readOptions({
    s3: { ...store.options, prefix: 'usher' },
    uploadsDir: temporaryFolder(),
    deadlines: slow,
    databaseUrl: 'postgres://localhost/usher',
  })
  const backend = createS3(options.s3!, options)
  t.teardown(() => backend.close())
  await backend.claim('database')
  const faults = new Map<string, (request: FakeRequest) => Fault | undefined>()
  store.misbehave((request) => {
    const [, id] = /(?:files|parts)\/([\da-f-]{36})/.exec(`${request.key} ${request.query.get('prefix')}`) ?? []
    return id === undefined ? undefined : faults.get(id)?.(request)
  })
  return { store, backend, faults }
}

type Opened = Awaited<ReturnType<typeof open>>

/** A kind of request. */
interface Kind {
  readonly is: (request: FakeRequest) => boolean
  readonly document: string
  readonly answers?: readonly string[]
  /** Does what needs the request. */
  readonly run: (backend: StorageBackend, id: string) => Promise<unknown>
  /** Prepares for it, without faults. */
  readonly prepare?: (backend: StorageBackend, id: string) => Promise<unknown>
  /** Returns whether the store has done what was asked. */
  readonly isDone: (opened: Opened, id: string) => boolean
  /** Whether the store can be asked whether it has done it, if its answer does not prove it. */
  readonly isVerified: boolean
  /** What is thrown if the store never proves it. */
  readonly error: abstract new (...given: never[]) => Error
}

const store = (durable: boolean) => async (backend: StorageBackend, id: string) => {
  await backend.write(id, [BYTES] as never, 'temporary', { durable })
  await backend.publish(id)
}
const isStored = ({ store }: Opened, id: string) => store.objects.get(`usher/files/${id}`)?.bytes.equals(BYTES) === true
const isGone = ({ store }: Opened, id: string) => !store.objects.has(`usher/files/${id}`)
const isPart = ({ query }: FakeRequest) => query.has('partNumber')
const isCopy = ({ headers }: FakeRequest) => headers['x-amz-copy-source'] !== undefined

const kinds: Readonly<Record<string, Kind>> = {
  'PUT of a file': {
    is: (request) => request.method === 'PUT' && !isPart(request),
    document: 'PutObjectResult',
    answers: withoutDocument,
    run: store(false),
    isDone: isStored,
    isVerified: true,
    error: StorageFailed,
  },
  'POST that begins an upload of several parts': {
    is: ({ method, query }) => method === 'POST' && query.has('uploads'),
    document: 'InitiateMultipartUploadResult',
    run: store(true),
    isDone: isStored,
    isVerified: false,
    error: StorageFailed,
  },
  'PUT of a part': {
    is: (request) => request.method === 'PUT' && isPart(request),
    document: 'PutObjectResult',
    answers: withoutDocument,
    run: store(true),
    isDone: isStored,
    isVerified: false,
    error: StorageFailed,
  },
  'POST that joins parts': {
    is: ({ method, query }) => method === 'POST' && query.has('uploadId'),
    document: 'CompleteMultipartUploadResult',
    run: store(true),
    isDone: isStored,
    isVerified: true,
    error: StorageFailed,
  },
  'PUT that copies': {
    is: (request) => request.method === 'PUT' && isCopy(request),
    document: 'CopyObjectResult',
    prepare: (backend, id) => backend.write(id, [BYTES] as never, 'part'),
    run: (backend, id) => backend.publish(id, 'part'),
    isDone: isStored,
    isVerified: true,
    error: StorageFailed,
  },
  'DELETE of a file': {
    is: ({ method, query }) => method === 'DELETE' && !query.has('uploadId'),
    document: 'DeleteResult',
    prepare: store(false),
    run: (backend, id) => backend.remove('published', id),
    isDone: isGone,
    isVerified: true,
    error: Error,
  },
  'DELETE of an upload of several parts': {
    is: ({ method, query }) => method === 'DELETE' && query.has('uploadId'),
    document: 'DeleteResult',
    prepare: (backend, id) => backend.write(id, [BYTES] as never, 'temporary', { durable: true }),
    run: (backend, id) => backend.remove('temporary', id),
    isDone: ({ store }, id) => ![...store.uploads.values()].some(({ key }) => key.endsWith(id)),
    isVerified: true,
    error: Error,
  },
}

// Most of the time is that of the pauses before a request is repeated.
t.test('13.3 what is written', async (t) => {
  t.jobs = 4
  for (const [name, kind] of Object.entries(kinds)) {
    t.test(`13.3 ${name}: no answer counts that proves nothing`, async (t) => {
      const opened = await open(t)
      const { backend, faults } = opened
      const run = async (answer: string, { once, isAfter }: { once: boolean, isAfter: boolean }) => {
        const title = `${answer}, ${once ? 'once' : 'always'}, ${isAfter ? 'after' : 'before'} it was done`
        const { send, isSuccess } = answers[answer]!
        const id = randomUUID()
        await kind.prepare?.(backend, id)
        let count = 0
        faults.set(id, (request) => {
          if (!kind.is(request) || (once && count > 0)) return undefined
          const isFirst = count++ === 0
          const respond = (response: ServerResponse) => { send(response, kind.document) }
          return isAfter && isFirst ? { answer: respond } : respond
        })
        const error = await kind.run(backend, id).then(() => undefined, (error: unknown) => error)
        faults.delete(id)
        t.ok(count > 0, `${title}: it was asked`)
        const isProven = once || (isAfter && isSuccess && kind.isVerified)
        if (isProven) t.equal(error, undefined, title)
        else t.ok(error instanceof kind.error, title)
        if (isProven) t.ok(kind.isDone(opened, id), `${title}: it is done`)
      }
      await Promise.all((kind.answers ?? Object.keys(answers)).flatMap((answer) =>
        [true, false].flatMap((once) => [true, false].map((isAfter) => run(answer, { once, isAfter })))))
    })
  }
})

/** Requests that read. */
const reads: Readonly<Record<string, {
  is: (request: FakeRequest) => boolean,
  document: string,
  answers?: readonly string[]
  read: (backend: StorageBackend, id: string) => Promise<unknown>,
  expected: (id: string) => unknown
}>> = {
  HEAD: {
    is: ({ method }) => method === 'HEAD',
    document: '',
    answers: ofHead,
    read: (backend, id) => backend.has(id),
    expected: () => true,
  },
  GET: {
    is: ({ method, key }) => method === 'GET' && key !== '',
    document: 'File',
    read: (backend, id) => readAll(backend, id),
    expected: () => `${BYTES}`,
  },
  'GET of a range': {
    is: ({ method, key }) => method === 'GET' && key !== '',
    document: 'File',
    read: (backend, id) => readAll(backend, id, { start: 4, end: 8, size: BYTES.length }),
    expected: () => 'bytes',
  },
}

async function readAll (
  backend: StorageBackend, id: string, range: SizedRange = { start: 0, end: BYTES.length - 1, size: BYTES.length }
): Promise<string | undefined> {
  const bytes = await backend.read(id, range)
  return bytes && (await buffer(bytes)).toString()
}

// Most of the time is that of the pauses before a request is repeated.
t.test('13.3 what is read', async (t) => {
  t.jobs = 4
  for (const [name, kind] of Object.entries(reads)) {
    t.test(`13.3 ${name}: what is not proven is neither read nor absent`, async (t) => {
      const { backend, faults } = await open(t)
      await Promise.all((kind.answers ?? Object.keys(answers)).flatMap((answer) => [true, false].map(async (once) => {
        const title = `${answer}, ${once ? 'once' : 'always'}`
        const id = randomUUID()
        await store(false)(backend, id)
        let count = 0
        faults.set(id, (request) => kind.is(request) && (count++ === 0 || !once)
          ? (response: ServerResponse) => { answers[answer]!.send(response, kind.document) }
          : undefined)
        const outcome = await kind.read(backend, id).catch((error: unknown) => error)
        faults.delete(id)
        if (once) t.equal(outcome, kind.expected(id), title)
        else t.ok(outcome instanceof StorageUnavailable, title)
      })))
      for (const answer of ['<Error><Code>NoSuchKey</Code>', PAGE, '']) {
        const id = randomUUID()
        await store(false)(backend, id)
        faults.set(id, ({ method }) => method === 'GET' ? (response) => { response.writeHead(404).end(answer) } : undefined)
        t.ok(await backend.read(id).catch((error: unknown) => error) instanceof StorageUnavailable, `404 ${answer} is not absence`)
        faults.delete(id)
      }
      t.equal(await backend.read(randomUUID()), undefined)
    })
  }
})

const lists: Readonly<Record<string, {
  is: (request: FakeRequest) => boolean, document: string, item: (id: string) => string, stage: 'temporary' | 'published'
}>> = {
  'a list of objects': {
    is: ({ key, query }) => key === '' && !query.has('uploads'),
    document: 'ListBucketResult',
    item: (id) => `<Contents><Key>usher/files/${id}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00Z</LastModified></Contents>`,
    stage: 'published',
  },
  'a list of uploads of several parts': {
    is: ({ query }) => query.has('uploads'),
    document: 'ListMultipartUploadsResult',
    item: (id) => `<Upload><Key>usher/files/${id}</Key><UploadId>1</UploadId><Initiated>2026-01-01T00:00:00Z</Initiated></Upload>`,
    stage: 'temporary',
  },
  'a list of parts': {
    is: ({ method, query }) => method === 'GET' && query.has('uploadId'),
    document: 'ListPartsResult',
    item: () => '<Part><PartNumber>1</PartNumber><ETag>"1"</ETag><Size>1</Size><LastModified>2026-01-01T00:00:00Z</LastModified></Part>',
    stage: 'temporary',
  },
}

async function collect (backend: StorageBackend, stage: 'temporary' | 'published'): Promise<string> {
  const ids: string[] = []
  for await (const batch of backend.listOld(stage, -Infinity, new AbortController().signal)) {
    ids.push(...batch.map(({ id, size }) => `${id} ${size}`))
  }
  return ids.join()
}

// Most of the time is that of the pauses before a request is repeated.
t.test('13.3 what is listed', async (t) => {
  t.jobs = 4
  for (const [name, kind] of Object.entries(lists)) {
    t.test(`13.3 ${name}: what is not proven is no list, in particular not an empty one`, async (t) => {
      const { document, item, stage } = kind
      const [stored, temporary] = [randomUUID(), randomUUID()]
      const expected = `${stage === 'published' ? stored : temporary} ${BYTES.length}`
      const more: Record<string, string> = {
        'no end': item(temporary),
        'a wrong end': `${item(temporary)}<IsTruncated>maybe</IsTruncated>`,
        'more, without saying where': `${item(temporary)}<IsTruncated>true</IsTruncated>`,
        'the same page again and again': `${item(temporary)}<IsTruncated>true</IsTruncated>${
          ['NextContinuationToken', 'NextKeyMarker', 'NextPartNumberMarker'].map((name) => `<${name}>7</${name}>`).join('')}`,
        'an item without its members': `${item(temporary).replace(/>[^<]+</g, '><')}<IsTruncated>false</IsTruncated>`,
        'an item without a time': `${item(temporary).replace('2026-01-01T00:00:00Z', 'today')}<IsTruncated>false</IsTruncated>`,
      }
      if (!name.endsWith(' parts')) {
        more['items of others'] = `${item(temporary).replace('usher/', 'other/')}<IsTruncated>false</IsTruncated>`
      }
      const all: Record<string, Answer> = {
        ...answers,
        ...Object.fromEntries(Object.entries(more).map(([title, content]) =>
          [title, success((name) => `<${name} ${XMLNS}>${content}</${name}>`)])),
      }
      await Promise.all(Object.entries(all).map(async ([title, { send }]) => {
        const { store: fake, backend } = await open(t)
        await store(false)(backend, stored)
        await backend.write(temporary, [BYTES] as never, 'temporary', { durable: true })
        for (const once of [true, false]) {
          let count = 0
          fake.misbehave((request) => kind.is(request) && (count++ === 0 || !once)
            ? (response) => { send(response, document) }
            : undefined)
          const outcome = await collect(backend, stage).catch((error: unknown) => error)
          if (once && title !== 'the same page again and again') t.equal(outcome, expected, `${title}, once`)
          if (!once) t.ok(outcome instanceof Error, `${title}, always`)
        }
      }))
    })
  }
})

t.test('13.3 a start and a check refuse a store that answers 200 to everything, with a sentence', async (t) => {
  for (const answer of ['an empty body', 'an HTML page', 'an HTML page with an ETag', 'a document without content']) {
    const { store, backend } = await open(t)
    store.misbehave(() => (response) => { answers[answer]!.send(response, 'ListBucketResult') })
    const message = /^usher: s3\.endpoint 127\.0\.0\.1:\d+ does not answer like an S3: check the address\. The store has answered/
    await t.rejects(backend.claim('another'), { message }, answer)
    await t.rejects(backend.check(), { message }, answer)
  }
})

t.test('1.11 an upload is acknowledged if the store has it, and leaves nothing behind if not', async (t) => {
  const store = await startFakeS3(t)
  const usher = await createUsher(t, { s3: { ...store.options, prefix: 'usher' }, uploadMaxBytes: 2 * PART_BYTES })
  const sql = openSql(t, usher)
  const large = randomBytes(PART_BYTES + 1)
  for (const [kind, content] of [['PUT of a file', BYTES], ['POST that joins parts', large]] as const) {
    const { is, document } = kinds[kind]!
    // All answers are tried above. This is about what the client gets, and what is left.
    for (const answer of ['an HTML page', 'an error with a namespace', 'a document that is cut off']) {
      let count = 0
      store.misbehave((request) => is(request) && count++ === 0
        ? (response) => { answers[answer]!.send(response, document) }
        : undefined)
      const { fileUrl, id } = await upload(usher, content)
      t.ok((await usher.inject('GET', fileUrl)).rawPayload.equals(content), `${kind}: ${answer}, once`)
      await usher.inject('DELETE', `/api/uploads/${id}`, { headers: usher.admin.headers })
    }
    for (const answer of ['an empty body', 'an HTML page', 'an error']) {
      store.misbehave((request) => is(request)
        ? (response) => { answers[answer]!.send(response, document) }
        : undefined)
      const { statusCode, json } = await post(usher, [filePart(content), fieldPart('description', 'x')])
      t.equal(statusCode, 507, `${kind}: ${answer}, always`)
      t.match(json(), { code: 'STORAGE_FAILED' })
      store.misbehave()
    }
  }
  t.same(leftoversInBucket(store, usher), { objects: 0, uploads: 0, parts: 0 })
  t.same(await sql`select id from uploads`, [])
})

t.test('documents are read if they are complete, whatever prefixes, comments and white space they have', async (t) => {
  const whole = '<?xml version="1.0"?>\n<!-- <Error> --><s3:Result xmlns:s3="urn:x" a=\'1\'>\n <s3:Key>a&amp;b&#x20;&#99;</s3:Key>' +
    '<Key/><Text><![CDATA[<b>]]>!</Text>\n</s3:Result>\n'
  const root = readDocument(whole)!
  t.equal(root.name, 'Result')
  t.same([root.textOf('Key'), root.textOf('Text'), root.textOf('None'), root.all('Key').length], ['a&b c', '<b>!', undefined, 2])
  for (let length = 0; length < whole.trimEnd().length; length++) {
    t.equal(readDocument(whole.slice(0, length)), undefined, `${length} characters`)
  }
  for (const wrong of [
    PAGE, '', ' ', 'text', '<a>', '</a>', '<a></b>', '<a></a><b></b>', '<a/>text', '<a>&nbsp;</a>', '<a>&</a>', '<a>&#x110000;</a>',
    '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', '<a b=c></a>', '<a <b></b>></a>', '<a></a x="1">', '< a></a>', '<![CDATA[x]]>',
    `<a${' '.repeat(100_000)}`, `<a${' b="c"'.repeat(10_000)}`,
  ]) t.equal(readDocument(wrong), undefined, wrong.slice(0, 50))
})
