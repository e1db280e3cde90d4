import t from 'tap'
import { Type } from '@sinclair/typebox'
import { decodeCursor, encodeCursor } from '../../schema/http/cursor.ts'
import { InvalidInput } from '../../schema/http/errors.ts'
import type { UsherOptions } from '../../schema/options/options.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import { Content, Title } from '../../schema/strings/text.ts'
import { createParser } from '../../schema/http/validator.ts'

const ID = '0190a5b4-7c3e-7d11-8abc-0123456789ab'

// Returns the error messages for an input.
function problems (parse: () => unknown): readonly string[] {
  try {
    parse()
    return []
  } catch (error) {
    return (error as InvalidInput).errors
  }
}

t.test('1.2 input that does not come from a route is validated like a body', async (t) => {
  const parse = createParser(Type.Object({
    title: Title, content: Content, tags: Type.Optional(Type.Array(Type.Object({ name: Type.String() }))),
  }))
  const long = { title: 't'.repeat(201), content: 'é'.repeat(32769) }
  t.same(problems(() => parse({})), ['title is required', 'content is required'])
  t.same(problems(() => parse(long)), ['title must be at most 200 characters', 'content must be at most 65536 bytes'])
  t.same(
    problems(() => parse({ title: ' ', content: 'a\u0000' })),
    ['title must not be blank', 'content must not contain control characters']
  )
  t.same(
    problems(() => parse({ title: '\ud800', content: '\udc00' })),
    ['title must not contain control characters', 'content must not contain control characters']
  )
  t.same(
    problems(() => parse({ content: '', title: 'x', tags: [{ name: 'a' }, {}, { name: 1 }] })),
    ['tags.1.name is required', 'tags.2.name must be a string']
  )
  t.same(problems(() => parse(null)), ['body must be an object'])
  const nullable = createParser(Type.Object({ text: Type.Unsafe({ type: ['string', 'null'] }) }))
  t.same([nullable({ text: null }), problems(() => nullable({ text: 1 }))], [
    { text: null }, ['text must be a string or null'],
  ])
  t.throws(() => parse(long), { message: 'title must be at most 200 characters; content must be at most 65536 bytes' })
})

t.test('1.8 a title is trimmed before its length is checked, and content keeps its line breaks and tabs', async (t) => {
  const parse = createParser(Type.Object({ title: Title, content: Content }))
  const given = { title: `  ${'t'.repeat(200)}\n`, content: ' a\r\n\tb ' }
  t.same(parse(given), { title: 't'.repeat(200), content: ' a\r\n\tb ' })
  t.ok(given.title.startsWith(' '), 'the input itself is not changed')
  t.same(problems(() => parse({ title: 'x', content: 'x'.repeat(65536) })), [])
})

t.test('2 a cursor contains the id of a row, and other texts are rejected', async (t) => {
  t.match(encodeCursor(ID), /^[\w-]{22}$/)
  t.equal(decodeCursor(encodeCursor(ID)), ID)
  for (const cursor of [
    '', ID, 'x', `${encodeCursor(ID)}=`, `${encodeCursor(ID)}\n`, ` ${encodeCursor(ID)}`, 'é'.repeat(22),
  ]) {
    t.throws(
      () => decodeCursor(cursor), { errors: ['after must be a cursor from a previous page'] }, JSON.stringify(cursor)
    )
  }
})

t.test('9 an invalid option makes the start fail with a sentence that names it', async (t) => {
  const databaseUrl = 'postgres://localhost/usher'
  const wrong: [UsherOptions, string | RegExp][] = [
    [{ databaseUrl, publicUrl: 'mailto:ada@example.com' }, /^usher: publicUrl must be an address such as/],
    [{ databaseUrl, publicUrl: 'https://a b' }, /^usher: publicUrl must be an address such as/],
    [{ databaseUrl, poolSize: 1 }, 'usher: poolSize must be between 2 and 1000'],
    [{ databaseUrl, poolSize: 2.5 }, 'usher: poolSize must be an integer'],
    [{ databaseUrl, schema: 'Bad"Schema' }, /^usher: schema must match/],
    [{ databaseUrl, origins: [1 as unknown as string] }, /^usher: origins must be origins such as/],
  ]
  for (const [options, message] of wrong) t.throws(() => readOptions(options), { message }, JSON.stringify(options))
})

t.test('12.2 options with members that are obviously valid are checked like others, and have the same defaults', (t) => {
  const databaseUrl = 'postgres://localhost/usher'
  const read = (options: object) => readOptions({ databaseUrl, ...options })
  const usual = read({})
  const { productName: _, ...pages } = usual.pages
  const given: [given: object, expected: object][] = [
    [{ throttle: { account: { burst: 1 } } }, {
      throttle: { ...usual.throttle, account: { ...usual.throttle.account, burst: 1 } },
    }],
    [{ throttle: usual.throttle, live: usual.live, graphql: usual.graphql, deadlines: usual.deadlines }, {}],
    [{ deadlines: { batch: 1, statement: undefined } }, { deadlines: { ...usual.deadlines, batch: 1 } }],
    [{ deadlines: Object.create({ batch: 0 }) }, {}],
    [{ deadlines: { batch: 86_400_000 } }, { deadlines: { ...usual.deadlines, batch: 86_400_000 } }],
    [{ pages: { productName: ' Acme ', color: undefined } }, { pages: { ...pages, productName: 'Acme' } }],
    [{ pages: { texts: { logIn: 'Enter', de: { logIn: 'Herein' } } } }, {
      pages: { ...usual.pages, texts: { logIn: 'Enter', de: { logIn: 'Herein' } } },
    }],
  ]
  for (const [options, expected] of given) {
    t.strictSame({ ...read(options), hooks: {} }, { ...usual, hooks: {}, ...expected }, JSON.stringify(options))
  }
  const wrong: [option: string, value: unknown, message: RegExp][] = [
    ...[0, 86_400_001].map((batch) =>
      ['deadlines', { batch }, /^usher: deadlines\.batch must be between 1 and 86400000$/] as [string, unknown, RegExp]),
    ...[1.5, NaN, Infinity, '1', null, true, {}, []].map((batch) =>
      ['deadlines', { batch }, /^usher: deadlines\.batch must be/] as [string, unknown, RegExp]),
    ['deadlines', { batch: 1, bach: 1 }, /^usher: deadlines has no member bach$/],
    ['deadlines', { bach: undefined }, /^usher: deadlines has no member bach$/],
    ['deadlines', [], /^usher: deadlines must be an object$/],
    ['throttle', { account: { burst: 1, perHour: 1 } }, /^usher: throttle\.account has no member perHour$/],
    ['throttle', { account: null }, /^usher: throttle\.account must be an object$/],
    ['console', 'true', /^usher: console must be a boolean$/],
    ['pages', { name: 'Acme' }, /^usher: pages has no member name$/],
    ['pages', { texts: { de: { logOn: 'Herein' } } }, /^usher: pages\.texts\.de has no member logOn$/],
    ['admin', { email: 'admin@example.com' }, /^usher: admin\.password is required$/],
  ]
  for (const [option, value, message] of wrong) {
    t.throws(() => read({ [option]: value }), { message }, JSON.stringify({ [option]: value }))
  }
  t.end()
})
