import { getIntrospectionQuery, parse } from 'graphql'
import t from 'tap'
import { checkLimits, limits } from '../../schema/graphql/limits.ts'

const check = (source: string) => () => checkLimits(parse(source))
const nest = (levels: number) => `${'me { '.repeat(levels - 1)}id ${'} '.repeat(levels - 1)}`

t.test('7.8 the depth of a document is counted in nested fields, also through fragments', async (t) => {
  t.doesNotThrow(check(`{ ${nest(10)} }`))
  t.throws(check(`{ ${nest(11)} }`), {
    message: 'The document is deeper than 10 levels', extensions: { code: 'GRAPHQL_LIMIT_EXCEEDED' },
  })
  t.doesNotThrow(check(`{ ... { ... on Query { ${nest(10)} } } }`))
  t.throws(check(`{ ... { ... on Query { ${nest(11)} } } }`), { message: 'The document is deeper than 10 levels' })
  t.doesNotThrow(check('{ a { b { c { d { e { ...F } } } } } } fragment F on Post { f { g { h { i { j } } } } }'))
  t.throws(check('{ a { b { c { d { e { ...F } } } } } } fragment F on Post { f { g { h { i { j { k } } } } } }'), {
    message: 'The document is deeper than 10 levels',
  })
  t.throws(check(`query A { id } query B { ${nest(11)} }`), { message: 'The document is deeper than 10 levels' })
  t.throws(check(`subscription { ${nest(11)} }`), { message: 'The document is deeper than 10 levels' })
})

t.test('7.8 introspection has a larger limit of depth', async (t) => {
  t.doesNotThrow(check(getIntrospectionQuery({
    specifiedByUrl: true,
    directiveIsRepeatable: true,
    schemaDescription: true,
    inputValueDeprecation: true,
    oneOf: true,
  })))
  const types = (levels: number) =>
    `{ __schema { types { ${'ofType { '.repeat(levels - 3)}name ${'} '.repeat(levels - 3)} } } }`
  t.doesNotThrow(check(types(20)))
  t.throws(check(types(21)), { message: 'The document is deeper than 20 levels' })
  t.throws(
    check(`{ me { ...F } } fragment F on User ${types(21)}`), { message: 'The document is deeper than 20 levels' }
  )
})

t.test('7.8 fields, aliases and directives of a fragment count for every spread', async (t) => {
  const fields = (count: number) => Array.from({ length: count }, (_, index) => `f${index}`).join(' ')
  t.doesNotThrow(check(`{ ${fields(limits.fields)} }`))
  t.throws(check(`{ ${fields(limits.fields + 1)} }`), { message: 'The document has more than 500 fields' })
  t.doesNotThrow(check(`{ ${'a: id '.repeat(50)} }`))
  t.throws(check(`{ ${'a: id '.repeat(51)} }`), { message: 'The document has more than 50 aliases' })
  t.doesNotThrow(check(`{ ${'id @a '.repeat(50)} }`))
  t.throws(check(`{ ${'id @a '.repeat(51)} }`), { message: 'The document has more than 50 directives' })
  t.throws(check(`query ${'@a '.repeat(51)} { id }`), { message: 'The document has more than 50 directives' })
  t.throws(check(`{ ... ${'@a '.repeat(51)} { id } }`), { message: 'The document has more than 50 directives' })
  t.throws(check(`{ ...F ${'@a '.repeat(51)} } fragment F on Query { id }`), {
    message: 'The document has more than 50 directives',
  })
  t.throws(check(`{ ...F } fragment F on Query ${'@a '.repeat(51)} { id }`), {
    message: 'The document has more than 50 directives',
  })
  t.throws(
    check('{ ...F ...F ...F } fragment F on Query { a: id b: id c: id d: id e: id f: id g: id h: id i: id j: id k: id l: id m: id n: id o: id p: id q: id }'),
    { message: 'The document has more than 50 aliases' }
  )
})

t.test('7.8 fragments that multiply each other or form a cycle are rejected, and unknown ones are left to validation', async (t) => {
  const bomb =
    Array.from({ length: 60 }, (_, index) => `fragment F${index} on Query { ...F${index + 1} ...F${index + 1} }`)
      .join(' ')
  t.throws(
    check(`{ ...F0 } ${bomb} fragment F60 on Query { id }`), { message: 'The document has more than 500 fields' }
  )
  t.throws(check('{ ...A } fragment A on Query { ...A }'), { message: 'Fragment A spreads itself' })
  t.throws(
    check(
      '{ ...A } fragment A on Query { ...B } fragment B on Query { me { ...C } } fragment C on User { ... { ...A } }'
    ),
    { message: 'Fragment A spreads itself' }
  )
  t.doesNotThrow(check('{ ...A } fragment A on Query { me { ...B } posts { ...B } }'))
  t.doesNotThrow(check('{ id } fragment A on Query { ...A }'))
})

t.test('7.8 aliases have at most 100 characters', async (t) => {
  t.doesNotThrow(check(`{ ${'a'.repeat(limits.aliasLength)}: id }`))
  t.throws(
    check(`{ me { ${'a'.repeat(limits.aliasLength + 1)}: id } }`), { message: 'An alias is longer than 100 characters' }
  )
})

t.test('7.8 the number of pairs of fields with the same key is limited, at every level and in fragments', async (t) => {
  const message = 'The document has more than 2000 pairs of fields with the same name'
  t.doesNotThrow(check(`{ ${'id '.repeat(63)} }`))
  t.throws(check(`{ ${'id '.repeat(64)} }`), { message })
  t.doesNotThrow(check(`{ ${'me { id } '.repeat(45)} }`))
  t.throws(check(`{ ${'me { id } '.repeat(46)} }`), { message })
  t.throws(check(
    `{ me { ...A } me { ...B } } fragment A on User { ${'id '.repeat(32)} } fragment B on User { ${'id '.repeat(32)} }`
  ), { message })
  t.throws(
    check(`{ id } fragment A on User { ${'id '.repeat(64)} }`), { message }, 'in a fragment that nothing spreads'
  )
  t.doesNotThrow(
    check(`{ ${'...A '.repeat(100)} } fragment A on Query { id }`), 'a fragment is the same wherever it is spread'
  )
})
