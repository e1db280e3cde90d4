// Generates routes/graphql/types.ts, the types of the resolvers, from the SDL. With --check, fails if the file is not current.
import { readFile, writeFile } from 'node:fs/promises'
import { codegen } from '@graphql-codegen/core'
import * as typescript from '@graphql-codegen/typescript'
import * as resolvers from '@graphql-codegen/typescript-resolvers'
import { parse } from 'graphql'

const sdl = new URL('../schema/schema.graphql', import.meta.url)
const target = new URL('../routes/graphql/types.ts', import.meta.url)

const generated = await codegen({
  filename: target.pathname,
  schema: parse(await readFile(sdl, 'utf8')),
  documents: [],
  config: {
    useTypeImports: true,
    enumsAsTypes: true,
    maybeValue: 'T | null | undefined',
    skipTypename: true,
    scalars: { ID: 'string', DateTime: 'Date' },
    contextType: './context.ts#GraphQLContext',
    mappers: { User: '../../db/tables.ts#UserRow', Post: '../../db/posts.ts#ListedPost' },
  },
  plugins: [{ typescript: {} }, { resolvers: {} }],
  pluginMap: { typescript, resolvers },
})
const text = `// Generated from schema/schema.graphql by \`npm run codegen\`; do not edit.\n${generated}`

if (!process.argv.includes('--check')) {
  await writeFile(target, text)
} else if (await readFile(target, 'utf8') !== text) {
  console.error('routes/graphql/types.ts is not current: run `npm run codegen`')
  process.exitCode = 1
}
