import { createHash } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { nightly } from '../helpers/nightly.ts'
import { END, fieldPart, filePart, FORM, leftovers, part, post, upload } from '../helpers/uploads.ts'
import { openSql } from '../helpers/sql.ts'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==', 'base64'
)

const NO_TEXT = 'description must be UTF-8, or text in the charset of its part'

const usher = await createUsher(t)
const limited = await createUsher(t, { uploadMaxBytes: 1000, uploadsDir: `${usher.options.uploadsDir}/limited` })

t.test('5.1 POST /api/uploads with a file and a description returns 200 with fileUrl (given)', async (t) => {
  for (const parts of [[filePart('Hello'), fieldPart('description', 'A greeting')], [
    fieldPart('description', 'A greeting'), filePart('Hello'),
  ]]) {
    const response = await post(usher, parts)
    t.equal(response.statusCode, 200)
    t.equal(response.headers['content-type'], 'application/json; charset=utf-8')
    const { fileUrl, id, ...rest } = response.json()
    t.match(id, UUID_V7)
    t.equal(fileUrl, `/api/uploads/${id}`)
    t.same(rest, {
      filename: 'notes.txt',
      mediaType: 'text/plain',
      size: 5,
      sha256: '185f8db32271fe25f561a6fc938b2e264306ec304eda518007d1764826381969',
      description: 'A greeting',
      visibility: 'public',
    })
    t.equal((await usher.inject('GET', fileUrl)).body, 'Hello')
  }
})

t.test('5.1 any user may upload with a form as a browser sends it', async (t) => {
  const { inject, createUser } = await createUsher(t, { ...usher.options, prefix: '/accounts' })
  const { headers } = await createUser()
  const form = new FormData()
  form.append('description', 'Line one\nline two\t✓')
  form.append('file', new Blob([PNG], { type: 'text/html' }), 'ünï ✓.png')
  const body = new Response(form)
  const response = await inject('POST', '/api/uploads', {
    headers: { ...headers, 'content-type': body.headers.get('content-type')! },
    payload: Buffer.from(await body.arrayBuffer()),
  })
  t.equal(response.statusCode, 200)
  t.match(response.json(), {
    filename: 'ünï ✓.png', mediaType: 'image/png', size: PNG.length, description: 'Line one\r\nline two\t✓',
  })
  t.match(response.json().fileUrl, /^\/accounts\/api\/uploads\//)
})

t.test('5.1 the parameters of a part may have any order, quoting and letter case', async (t) => {
  for (const [disposition, filename] of [
    ['filename="a.txt"; name="file"', 'a.txt'],
    ['name=file; filename=a.txt', 'a.txt'],
    ['filename=a.txt;name=file', 'a.txt'],
    ['NAME="file" ; FileName = "a b.txt"', 'a b.txt'],
    ['name="file"; size=3; filename="a;b=c.txt"', 'a;b=c.txt'],
    ['name="file"; filename="say \\"hi\\".txt"', 'say "hi".txt'],
    ['name="file"; filename="C:\\dir\\a.txt"', 'a.txt'],
    ['name="file"; filename=my file.txt', 'my file.txt'],
    ['name="file"; filename="na\u00efve \u2713.txt"', 'na\u00efve \u2713.txt'],
    // As .NET sends it.
    ['name="file"; filename="=?utf-8?B?4pyTLnR4dA==?="; filename*=utf-8\'\'%E2%9C%93.txt', '\u2713.txt'],
    ['name="file"; filename*=UTF-8\'en\'a%20%E2%9C%93.txt; filename="fallback.txt"', 'a \u2713.txt'],
    ['filename*=iso-8859-1\'\'caf%E9.txt; name="file"', 'caf\u00e9.txt'],
    ['name="file"; filename="fallback.txt"; filename*=x', 'fallback.txt'],
    ['name="file"; filename*=UTF-8\'\'..%2Fa.txt', 'a.txt'],
  ] as const) {
    const response = await post(
      usher, [part(`Content-Disposition: form-data; ${disposition}`, 'Hello'), fieldPart('description', 'x')]
    )
    t.match([response.statusCode, response.json()], [200, { filename, size: 5 }], disposition)
  }
})

t.test('5.1 a description may be in the charset of its part, and is returned unchanged', async (t) => {
  const typed = (type: string, value: Buffer) =>
    part(`Content-Disposition: form-data; name=description\r\nContent-Type: ${type}`, value)
  for (const [described, description] of [
    [fieldPart('description', '\ufeffcaf\u00e9 \ufffd'), '\ufeffcaf\u00e9 \ufffd'],
    [typed('text/plain; charset=ISO-8859-1', Buffer.from('caf\xe9', 'latin1')), 'caf\u00e9'],
    [typed('text/plain;charset="utf-16le"', Buffer.from('caf\u00e9', 'utf16le')), 'caf\u00e9'],
    [typed('application/json', Buffer.from('"caf\u00e9"')), 'caf\u00e9'],
  ] as const) {
    const response = await post(usher, [described, filePart('Hello')])
    t.match([response.statusCode, response.json()], [200, { description }])
  }
})

t.test('5.3 inputs of a form in which no file was chosen do not count', async (t) => {
  const response = await post(
    usher, [filePart('', ''), filePart('', '', 'avatar'), filePart('Hello'), fieldPart('description', 'x')]
  )
  t.match([response.statusCode, response.json()], [200, { filename: 'notes.txt', size: 5 }])
  t.match(
    (await post(usher, [filePart('', 'empty.txt'), fieldPart('description', 'x')])).json(),
    { filename: 'empty.txt', size: 0 },
    'a file may be empty'
  )
  t.match(
    (await post(usher, [filePart('Hello', ''), fieldPart('description', 'x')])).json(),
    { filename: 'file', size: 5 },
    'or have no name'
  )
})

t.test('1.4 an upload with a content coding gets 415 with Accept-Encoding', async (t) => {
  const response = await post(
    usher,
    [filePart('Hello'), fieldPart('description', 'x')],
    { headers: { ...usher.admin.headers, 'content-encoding': 'gzip' } }
  )
  t.same([response.statusCode, response.json().code, response.headers['accept-encoding']], [
    415, 'UNSUPPORTED_CONTENT_CODING', 'identity',
  ])
})

nightly('5.2 fileUrl is absolute if the public URL is set', async (t) => {
  const mounted = await createUsher(t, { ...usher.options, publicUrl: 'https://usher.example/', prefix: '/accounts' })
  const { fileUrl, id } = await upload(mounted, 'x')
  t.equal(fileUrl, `https://usher.example/accounts/api/uploads/${id}`)
})

t.test('5.3 invalid uploads are rejected', async (t) => {
  const { inject, admin } = limited
  const file = filePart('Hello')
  const description = fieldPart('description', 'Something')

  const wrong: Record<string, [Buffer[], string[]]> = {
    'both parts missing': [[fieldPart('other', 'x')], ['file is required', 'description is required']],
    'no parts at all': [[], ['file is required', 'description is required']],
    'no file': [[description], ['file is required']],
    'no description': [[file], ['description is required']],
    'another name for the file': [[filePart('x', 'a', 'avatar'), description], ['file is required']],
    'two files': [[file, file, description], ['file must be a single file']],
    'two files of different names': [[filePart('x', 'a', 'avatar'), file, description], ['file must be a single file']],
    'two files and no description': [[file, file], ['file must be a single file', 'description is required']],
    'the file as a text': [[fieldPart('file', 'Hello'), description], ['file must be sent as a file']],
    'the description as a file': [
      [file, filePart('x', 'a', 'description')], ['file must be a single file', 'description must be a text field'],
    ],
    'a description as the only file': [
      [filePart('x', 'a', 'description')], ['file is required', 'description must be a text field'],
    ],
    'two descriptions': [[description, description, file], ['description must be given once']],
    'a description of 2,001 characters': [
      [file, fieldPart('description', '😀'.repeat(2001))], ['description must be at most 2000 characters'],
    ],
    'a description that is cut': [
      [fieldPart('description', '😀'.repeat(9000)), file], ['description must be at most 2000 characters'],
    ],
    'a description with NUL': [
      [file, fieldPart('description', 'a\0b')], ['description must not contain control characters'],
    ],
    'a description with a control character': [
      [file, fieldPart('description', 'a\x1bb')], ['description must not contain control characters'],
    ],
    'a description that is not UTF-8': [[file, fieldPart('description', Buffer.from('caf\xe9', 'latin1'))], [NO_TEXT]],
    'a description that is not UTF-8 and says that it is': [[file, part(
      'Content-Disposition: form-data; name="description"\r\nContent-Type: text/plain; charset="UTF-8"',
      Buffer.from('caf\xe9', 'latin1')
    )], [NO_TEXT]],
    'a description with a lone surrogate': [[file, part(
      'Content-Disposition: form-data; name="description"\r\nContent-Type: text/plain; charset=utf-16le',
      Buffer.from('\ud800', 'utf16le')
    )], [NO_TEXT]],
    'a description in an unknown charset': [[file, part(
      'Content-Disposition: form-data; name="description"\r\nContent-Type: text/plain; charset=klingon', 'x'
    )], [NO_TEXT]],
    'a name that is not UTF-8': [
      [part('Content-Disposition: form-data; name="file"; filename="caf\xe9.txt"', 'x', 'latin1'), description],
      ['filename must be UTF-8'],
    ],
    'no file chosen in a browser': [[filePart('', ''), description], ['file is required']],
    'an empty file without a name': [
      [part('Content-Disposition: form-data; name="file"\r\nContent-Type: application/octet-stream', ''), description],
      ['file is required'],
    ],
    'an empty text as the file': [[fieldPart('file', ''), description], ['file is required']],
    'an empty file without a name as the description': [
      [file, filePart('', '', 'description')], ['description is required'],
    ],
    'a description in JSON': [
      [file, part('Content-Disposition: form-data; name="description"\r\nContent-Type: application/json', '{"a":1}')],
      ['description must be a string'],
    ],
    'a description in bad JSON': [
      [file, part('Content-Disposition: form-data; name="description"\r\nContent-Type: application/json', '{')],
      ['body is not valid multipart/form-data'],
    ],
    'a name with NUL': [[filePart('x', 'a\0b.txt'), description], ['filename must not contain control characters']],
    'a name of 256 characters': [
      [filePart('x', 'a'.repeat(256))], ['filename must be at most 255 characters', 'description is required'],
    ],
    'a field named __proto__': [
      [file, description, fieldPart('__proto__', 'x')], ['body is not valid multipart/form-data'],
    ],
    'a file named __proto__': [
      [file, description, filePart('x', 'x', '__proto__')], ['body is not valid multipart/form-data'],
    ],
    'a field named constructor': [
      [fieldPart('constructor', 'x'), file, description], ['body is not valid multipart/form-data'],
    ],
  }
  for (const [what, [parts, errors]] of Object.entries(wrong)) {
    await t.test(`5.3 ${what}: 400`, async (t) => {
      const response = await post(limited, parts)
      t.equal(response.statusCode, 400)
      t.same(response.json(), { errors })
    })
  }

  const whole = Buffer.concat([description, file, END])
  const malformed: Record<string, [Buffer, string?]> = {
    'no boundary': [whole, 'multipart/form-data'],
    'a boundary without a value': [whole, 'multipart/form-data; boundary'],
    'an empty boundary': [whole, 'multipart/form-data; boundary='],
    'an endless boundary': [whole, `multipart/form-data; boundary=${'x'.repeat(300)}`],
    'another boundary': [whole, 'multipart/form-data; boundary=another'],
    'no last boundary': [Buffer.concat([description, file])],
    'a body cut off in the file': [whole.subarray(0, -30)],
    'a body cut off in a header': [Buffer.concat([description, file.subarray(0, 60)])],
    'a body cut off in the last boundary': [whole.subarray(0, -6)],
    'no form': [Buffer.from('{"file":"x","description":"y"}')],
  }
  for (const [what, [payload, type]] of Object.entries(malformed)) {
    await t.test(`5.3 ${what}: 400`, async (t) => {
      const response = await post(limited, [payload], { raw: true, ...type && { type } })
      t.equal(response.statusCode, 400)
      t.same(response.json(), { errors: ['body is not valid multipart/form-data'] })
    })
  }

  await t.test('5.3 an empty body: 400', async (t) => {
    const response = await post(limited, [], { raw: true })
    t.same(response.json(), { errors: ['file is required', 'description is required'] })
  })

  for (const type of [
    'application/json', 'application/x-www-form-urlencoded', 'multipart/mixed; boundary=the-boundary',
    'multipart/form-database', 'nonsense', '',
  ]) {
    await t.test(`5.3 a body of the type "${type}" gets 415`, async (t) => {
      const response = await post(limited, [whole], { raw: true, type })
      t.equal(response.statusCode, 415)
      t.same(response.json(), { error: 'The content type must be multipart/form-data', code: 'UNSUPPORTED_MEDIA_TYPE' })
    })
  }

  const tooLarge: Record<string, Buffer[]> = {
    'a file one byte over the limit': [description, filePart(Buffer.alloc(1001))],
    'a file over the limit, and no description': [filePart(Buffer.alloc(5000))],
    'fields that nobody asked for, beyond what a form may take': Array(33)
      .fill(filePart(Buffer.alloc(8192), 'x', 'other')),
    'more parts than a form may have': Array(101).fill(fieldPart('other', 'x')),
  }
  for (const [what, parts] of Object.entries(tooLarge)) {
    await t.test(`5.3 ${what}: 413`, async (t) => {
      const response = await post(limited, parts)
      t.equal(response.statusCode, 413)
      t.same(response.json(), { error: 'The request body is too large', code: 'PAYLOAD_TOO_LARGE' })
    })
  }

  await t.test('1.7 if several things are wrong, they are reported in the order 401, 403, 415, 413, 400', async (t) => {
    const huge = { 'content-length': '999999999', 'content-type': FORM }
    const none = await inject(
      'POST', '/api/uploads', { headers: { ...huge, 'content-type': 'text/plain' }, payload: 'x' }
    )
    t.equal(none.statusCode, 401)
    t.equal(none.headers['www-authenticate'], 'Bearer')
    const bad = await inject(
      'POST', '/api/uploads', { headers: { ...huge, authorization: 'Bearer x.y.z' }, payload: 'x' }
    )
    t.equal(bad.statusCode, 401)
    t.equal(bad.headers['www-authenticate'], 'Bearer error="invalid_token"')
    t.equal((await inject(
      'POST', '/api/uploads', { headers: { cookie: admin.cookie, 'content-type': FORM }, payload: whole }
    )).statusCode, 401)
    t.equal((await inject(
      'POST', '/api/uploads', { headers: { ...admin.headers, ...huge, 'content-type': 'text/plain' }, payload: 'x' }
    )).statusCode, 415)
    t.equal(
      (await inject('POST', '/api/uploads', { headers: { ...admin.headers, ...huge }, payload: 'x' })).statusCode, 413
    )
  })

  t.same(
    await leftovers(limited, openSql(t, limited)), { tmp: 0, files: 0, rows: 0 }, '5.5 nothing is left of any of them'
  )
})

t.test('1.6 a user without the permission gets 403 before anything else is checked', async (t) => {
  const { inject, admin } = await createUsher(t, { ...usher.options, policy: { 'uploads:create': () => false } })
  const response = await inject(
    'POST', '/api/uploads', { headers: { ...admin.headers, 'content-type': 'text/plain' }, payload: 'x' }
  )
  t.equal(response.statusCode, 403)
  t.same(response.json(), { error: 'You may not do this', code: 'FORBIDDEN' })
})

t.test('5.3 valid uploads are accepted', async (t) => {
  const description = fieldPart('description', 'Something')
  const accepted: Record<string, [Buffer[], object]> = {
    'a file of no bytes': [
      [filePart(''), description], { size: 0, mediaType: 'text/plain', sha256: createHash('sha256').digest('hex') },
    ],
    'a file of just the limit': [[filePart(Buffer.alloc(1000)), description], { size: 1000 }],
    'a description of 2,000 characters': [
      [filePart('x'), fieldPart('description', '😀'.repeat(2000))], { description: '😀'.repeat(2000) },
    ],
    'a blank description': [[filePart('x'), fieldPart('description', '')], { description: '' }],
    'unknown fields': [
      [fieldPart('other', 'x'.repeat(9000)), filePart('x'), description, part('X-Nothing: 1', 'x')], { size: 1 },
    ],
    'a file with a type and no name': [
      [part('Content-Disposition: form-data; name="file"\r\nContent-Type: application/octet-stream', 'x'), description],
      { filename: 'file' },
    ],
    'something after the last boundary': [[filePart('x'), description, END, Buffer.alloc(100)], { size: 1 }],
  }
  for (const [what, [parts, expected]] of Object.entries(accepted)) {
    await t.test(`5.3 ${what}: 200`, async (t) => {
      const response = await post(limited, parts)
      t.equal(response.statusCode, 200)
      t.match(response.json(), expected)
    })
  }
  await t.test('5.3 a content type in upper case is accepted', async (t) => {
    const response = await post(
      limited, [filePart('x'), description], { type: 'Multipart/Form-Data; Boundary="the-boundary"; charset=utf-8' }
    )
    t.equal(response.statusCode, 200)
  })
})

t.test('5.4 the client\'s filename is data and never becomes a path', async (t) => {
  const before = await readdir(`${usher.options.uploadsDir}/files`)
  const names: Record<string, string> = {
    '../../etc/passwd': 'passwd',
    '..\\..\\boot.ini': 'boot.ini',
    '/etc/passwd': 'passwd',
    'C:\\a\\b.txt': 'b.txt',
    '..': 'file',
    '.': 'file',
    '../': 'file',
    ' ': 'file',
    '': 'file',
    ' spaced .txt ': ' spaced .txt ',
    '.profile': '.profile',
    constructor: 'constructor',
    '%2e%2e%2fx': '%2e%2e%2fx',
    'Ünïcödé ✓ 文件.txt': 'Ünïcödé ✓ 文件.txt',
    ['a'.repeat(255)]: 'a'.repeat(255),
  }
  for (const [given, kept] of Object.entries(names)) t.equal((await upload(usher, 'x', given)).filename, kept, given)

  const response = await post(usher, [
    part('Content-Disposition: form-data; name="file"; filename*=UTF-8\'\'..%2F%E2%82%AC%20rates.txt', 'x'),
    fieldPart('description', 'RFC 5987'),
  ])
  t.equal(response.json().filename, '€ rates.txt')

  const files = await readdir(`${usher.options.uploadsDir}/files`)
  t.equal(files.length, before.length + Object.keys(names).length + 1)
  for (const file of files) t.match(file, UUID_V7)
  t.equal((await stat(`${usher.options.uploadsDir}/files/${files[0]}`)).mode & 0o777, 0o600)
})

t.test('5.4 the media type is detected from the bytes', async (t) => {
  const types: [string | Buffer, string][] = [
    [PNG, 'image/png'],
    [Buffer.from('%PDF-1.7\n'), 'application/pdf'],
    ['<!doctype html><script>alert(1)</script>', 'text/plain'],
    ['<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>', 'application/xml'],
    ['Grüße\r\n\t✓', 'text/plain'],
    ['x'.repeat(4099) + '✓', 'text/plain'],
    [Buffer.from('a\xe2\x9c', 'latin1'), 'application/octet-stream'],
    [Buffer.from('Gr\xfc\xdfe', 'latin1'), 'application/octet-stream'],
    ['a\0b', 'application/octet-stream'],
  ]
  for (const [content, type] of types) {
    t.equal((await upload(usher, content, 'claimed.html')).mediaType, type, `${content}`.slice(0, 20))
  }
})
