import { readFileSync } from 'node:fs'
import { buildSchema, getIntrospectionQuery, getOperationAST, parse } from 'graphql'
import t from 'tap'
import { costOf, evaluate } from '../../schema/graphql/cost.ts'

const schema = buildSchema(readFileSync(new URL('../../schema/graphql/schema.graphql', import.meta.url), 'utf8'))

function cost (source: string, variables: Record<string, unknown> = {}): number {
  const document = parse(source)
  return evaluate(costOf(schema, document, getOperationAST(document)!), variables)
}

t.test('7.8 the cost is the number of rows plus the number of fields in each row', async (t) => {
  t.equal(cost('{ me { id name } }'), 3)
  t.equal(cost('{ posts(first: 10) { nodes { id } } }'), 1 + 10 + 1 + 10)
  t.equal(cost('{ posts(first: 10) { nodes { id title } pageInfo { hasNextPage } } }'), 1 + 10 + 1 + 20 + 2)
  t.equal(cost('{ posts(first: 10) { edges { cursor node { id } } } }'), 1 + 10 + 1 + 30)
  t.equal(
    cost('{ users { nodes { posts { id } } } }'), 1 + 50 + 1 + 50 * (1 + 50 + 50), 'pages have 50 rows by default'
  )
  t.equal(cost('{ posts(first: 100) { nodes { author { posts(first: 99) { content } } } } }'), 20_102)
  t.equal(cost('{ __typename }'), 1)
  t.equal(cost('mutation { createPost(input: { title: "a", content: "b" }) { id author { id } } }'), 4)
  t.equal(cost('subscription { postCreated { author { posts(first: 3) { id } } } }'), 1 + 1 + 1 + 3 + 3)
})

t.test('7.8 aliases count as fields, fields that fragments have in common count once, and directives are ignored', async (t) => {
  t.equal(cost('{ me { a: id b: id } }'), 3)
  t.equal(cost('{ me { id id } }'), 2)
  t.equal(
    cost('{ me { ...A ...B ... on User { id } } } fragment A on User { id name } fragment B on User { ...A posts(first: 2) { id } }'),
    1 + 2 + 1 + 2 + 2
  )
  t.equal(
    cost('{ posts(first: 2) { nodes { id } } ...C } fragment C on Query { posts(first: 2) { nodes { title } } }'),
    1 + 2 + 1 + 4
  )
  t.equal(cost('query ($no: Boolean! = false) { me { id @include(if: $no) name @skip(if: true) } }'), 3)
})

t.test('7.8 the size of a page may be a variable', async (t) => {
  const sizes = (source: string, ...given: unknown[]) => given.map((first) => (cost(source, { first }) - 2) / 2)
  t.same(sizes('query ($first: Int) { posts(first: $first) { nodes { id } } }', 7, undefined, null), [7, 50, 50])
  t.same(sizes('query ($first: Int = 20) { posts(first: $first) { nodes { id } } }', 7, undefined, null), [7, 20, 50])
  t.same(sizes('query ($first: Int = null) { posts(first: $first) { nodes { id } } }', undefined), [50])
  t.same(
    sizes('query ($first: Int) { posts(first: $first) { nodes { id } } }', 1e9, -5, 0, 'x', NaN),
    [100, 50, 50, 100, 100],
    'execution rejects these sizes'
  )
  for (const [first, rows] of [[1000000, 100], [-1, 50], [0, 50]]) {
    t.same(sizes(`{ posts(first: ${first}) { nodes { id } } }`, undefined), [rows], `${first}`)
  }
  t.same(sizes('query ($first: Int = -1) { posts(first: $first) { nodes { id } } }', undefined), [50])
  t.equal(
    cost('query ($a: Int, $b: Int) { users(first: $a) { nodes { id posts(first: $b) { id } } } }', { a: 3, b: 4 }),
    1 + 3 + 1 + 3 * (1 + 1 + 4 + 4)
  )
})

t.test('7.8 introspection costs less than the default limit, and its lists have an assumed length', async (t) => {
  t.ok(cost(getIntrospectionQuery({
    specifiedByUrl: true,
    directiveIsRepeatable: true,
    schemaDescription: true,
    inputValueDeprecation: true,
    oneOf: true,
  })) < 12_500)
  t.equal(cost('{ __schema { types { name fields { name } } } }'), 1 + 1 + 5 * (1 + 1 + 5))
  t.equal(cost('{ __type(name: "User") { name } }'), 2)
})
