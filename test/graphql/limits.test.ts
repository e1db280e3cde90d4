import t, { type Test } from 'tap'
import { sharedUsher } from '../helpers/app.ts'
import { openSocket, post, protocols, type Answer } from '../helpers/graphql.ts'

const bomb = Array.from(
  { length: 60 }, (_, index) => `fragment F${index} on Query { ...F${index + 1} ...F${index + 1} ...F${index + 1} }`
).join(' ')
const deep = (levels: number) =>
  `{ me { ${'posts(first: 1) { author { '.repeat(levels)} id ${'} } '.repeat(levels)} } }`

const tooMuch: [what: string, query: string, message: string | RegExp][] = [
  ['depth', deep(5), 'The document is deeper than 10 levels'],
  [
    'depth in fragments',
    `{ me { ...A } } fragment A on User { posts { author { ...B } } } fragment B on User { ${deep(4).slice(2, -2).replace('me {', 'posts { author {')} } }`,
    'The document is deeper than 10 levels',
  ],
  ['tokens', `{ ${'me { id } '.repeat(300)} }`, /^Syntax Error: Document contains more that 1000 tokens/],
  ['brackets', '{'.repeat(100_000), /^Syntax Error: /],
  ['lists', `{ user(id: ${'['.repeat(100_000)}) { id } }`, /^Syntax Error: Document contains more that 1000 tokens/],
  [
    'aliases',
    `{ ${Array.from({ length: 51 }, (_, index) => `a${index}: me { id }`).join(' ')} }`,
    'The document has more than 50 aliases',
  ],
  ['directives', `{ me { id ${'@include(if: true) '.repeat(51)} } }`, 'The document has more than 50 directives'],
  [
    'fields',
    `{ me { ${'...F '.repeat(60)} } } fragment F on User { ${'id name email role '.repeat(5)} }`,
    'The document has more than 500 fields',
  ],
  ['a fragment bomb', `{ ...F0 } ${bomb} fragment F60 on Query { me { id } }`, 'The document has more than 500 fields'],
  ['a fragment that spreads itself', '{ ...A } fragment A on Query { ...A }', 'Fragment A spreads itself'],
  [
    'fragments that spread each other',
    '{ ...A } fragment A on Query { ...B } fragment B on Query { ...C } fragment C on Query { ...A }',
    'Fragment A spreads itself',
  ],
  [
    'fragments that spread each other, unused',
    '{ me { id } } fragment A on Query { ...B } fragment B on Query { ...A }',
    /^(Cannot spread fragment "A" within itself via "B"\.|Fragment "[AB]" is never used\.)$/,
  ],
  [
    'a fragment bomb, unused',
    `{ me { id } } ${bomb} fragment F60 on Query { me { id } }`,
    'Fragment "F0" is never used.',
  ],
]

t.test('limits', async (t) => {
  const usher = await sharedUsher()

  function refused (t: Test, { data, errors }: Answer, what: string, message: string | RegExp): void {
    t.notOk(data, what)
    t.match(errors![0], { message, extensions: { code: /^GRAPHQL_(LIMIT_EXCEEDED|INVALID)$/ } }, what)
  }

  t.test('7.8 over HTTP, a document over a limit is rejected each time', async (t) => {
    for (const [what, query, message] of tooMuch) {
      for (let round = 0; round < 3; round++) refused(t, await post(usher, { query }, usher.admin), what, message)
      refused(t, await post(usher, { mutation: query }, usher.admin), what, /./)
    }
    for (let round = 0; round < 3; round++) {
      t.equal((await post(usher, { query: deep(4) }, usher.admin)).errors, undefined)
    }
  })

  for (const protocol of protocols) {
    t.test(`7.8 over the socket with ${protocol}, documents over a limit are rejected, also subscriptions`, async (t) => {
      const socket = await (await openSocket(t, usher, { protocol })).init(usher.admin.headers)
      // A longer message would already be rejected for its size.
      for (const [what, query, message] of tooMuch.filter(([, query]) => query.length < 16_000)) {
        for (let round = 0; round < 2; round++) refused(t, await socket.run(query), what, message)
      }
      const events = `subscription { postCreated { ${deep(5).slice(2, -2).replace('me', 'author')} } }`
      refused(t, await socket.run(events), 'a subscription', 'The document is deeper than 10 levels')
      t.equal((await socket.run(deep(4))).errors, undefined)
    })
  }
})
