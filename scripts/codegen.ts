// Generates types: of the resolvers from the SDL, and of the client from the OpenAPI document of a node. With --check,
// fails if a file is not current. Both fail if a linter finds a problem in the document. The document is that of a
// running app, which needs PostgreSQL: the one of DATABASE_URL, or the embedded one.
import { readFile, writeFile } from 'node:fs/promises'
import { codegen } from '@graphql-codegen/core'
import * as typescript from '@graphql-codegen/typescript'
import * as resolvers from '@graphql-codegen/typescript-resolvers'
import { parse } from 'graphql'
import openapiTypescript, { astToString } from 'openapi-typescript'
import ts from 'typescript'
import { roles } from '../schema/users/members.ts'
import { createTestUsher } from '../testing/index.ts'
import { lintApi } from './lint-api.ts'

const sdl = new URL('../schema/graphql/schema.graphql', import.meta.url)

// Where the fields of a host are: in users, and in requests about them.
const shown = ['User', 'UserPart']
const changed = ['CreateUser', 'ReplaceUser', 'PatchUser', 'SignUp', 'ConfirmSignUp']
const typesOfFields = new Map<string, string>([
  ...shown.map((name) => [`#/components/schemas/${name}`, 'ShownFieldValues'] as const),
  ...changed.map((name) => [`#/components/schemas/${name}`, 'ChangedFieldValues'] as const),
])

await write('routes/graphql/types.ts', 'schema/graphql/schema.graphql', await generateResolvers())
await write('client/api.ts', 'the OpenAPI document', await generateApi())

async function generateResolvers (): Promise<string> {
  return codegen({
    filename: 'types.ts',
    schema: parse(await readFile(sdl, 'utf8')),
    documents: [],
    config: {
      useTypeImports: true,
      enumsAsTypes: true,
      maybeValue: 'T | null | undefined',
      skipTypename: true,
      scalars: { ID: 'string', DateTime: { input: 'string', output: 'Date' } },
      contextType: './context.ts#GraphQLContext',
      mappers: {
        User: '../../db/tables/index.ts#UserRow',
        Post: '../../db/posts/drafts.ts#AnyPost',
        PostCreated: '../../db/posts/followed.ts#ChangedPost',
        PostUpdated: '../../db/posts/followed.ts#ChangedPost',
        PostDeleted: '../../db/posts/followed.ts#ChangedPost',
        Upload: '../../db/uploads/uploads.ts#UploadRow',
        Organization: '../../db/organizations/organizations.ts#SeenOrganization',
        Membership: '../../plugins/organizations/organizations.ts#ShownMember',
      },
    },
    plugins: [{ typescript: {} }, { resolvers: {} }],
    pluginMap: { typescript, resolvers },
  })
}

async function generateApi (): Promise<string> {
  // With every operation: those of sign-up need a mailer, and those of organisations the option.
  const { app, close } =
    await createTestUsher({
      databaseUrl: process.env.DATABASE_URL, mailer: () => {}, signUp: true, loginMail: true, organizations: true,
    })
  try {
    const document = (await app.inject('/docs/json')).json()
    const problems = await lintApi(document)
    if (problems.length > 0) throw new Error(`The OpenAPI document is not as it should be:\n${problems.join('\n')}`)
    return astToString(await openapiTypescript(document, {
      inject: "import type { ChangedFieldValues, Role, ShownFieldValues } from './register.ts';\n",
      // A service may have other roles than the one whose document this is.
      transform: ({ enum: values }) =>
        values?.join() === roles.join() ? ts.factory.createTypeReferenceNode('Role') : undefined,
      postTransform (type, { path = '' }) {
        const name = typesOfFields.get(path)
        if (name === undefined) return undefined
        return ts.factory.createIntersectionTypeNode([type, ts.factory.createTypeReferenceNode(name)])
      },
    }))
  } finally {
    await close()
  }
}

async function write (path: string, source: string, generated: string): Promise<void> {
  const target = new URL(`../${path}`, import.meta.url)
  const text = `// Generated from ${source} by \`npm run codegen\`; do not edit.\n${generated}`
  if (!process.argv.includes('--check')) return writeFile(target, text)
  if (await readFile(target, 'utf8') === text) return
  console.error(`${path} is not current: run \`npm run codegen\``)
  process.exitCode = 1
}
