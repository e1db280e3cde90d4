import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import ts from 'typescript'

const root = join(import.meta.dirname, '../..')

// What the reader has: values of forms, and functions of the page.
const GIVEN = `
declare const email: string, password: string, token: string, id: string, title: string, baseUrl: string, apiKey: string
declare const file: File
declare function askForCode (): Promise<string>
declare function show (...values: unknown[]): void
declare function showMember (user: { name: string }): void
declare function showLogin (text: string): void
`
const CLIENT = "import { createUsherClient, unwrap, UsherError } from 'usher-client'\n"

t.test('15.4 every snippet of docs/client.md compiles', async (t) => {
  const document = readFileSync(join(root, 'docs/client.md'), 'utf8')
  const snippets = [...document.matchAll(/^( *)```(?:js|ts|tsx)\n([^]*?)^\1```$/gm)]
    .map(([, indent, code]) => code!.replaceAll(new RegExp(`^${indent}`, 'gm'), ''))
    // Those of the server, and the recipe for Vite, are run with the package.
    .filter((code) => !/fastify/.test(code.replaceAll('fastify-usher/client', '')) &&
      !/app\.register|from 'vite'/.test(code))
  t.ok(snippets.length > 8, `${snippets.length}`)
  // In the repository, for the packages.
  const folder = join(root, 'test/client/.snippets')
  mkdirSync(folder, { recursive: true })
  const files = snippets.map((code, index) => {
    const path = join(folder, `${index}.tsx`)
    const hasClient = /\b(?:const|let) client\b/.test(code)
    const imported = code.includes('createUsherClient }') || code.includes('createUsherClient,') ? '' : CLIENT
    const usesName = /\bname\b[,:]? /.test(code) && !/\{[^}]*\bname\b[^}]*\} (?:=|of|\))/.test(code)
    writeFileSync(path, `${usesName ? 'declare const name: string\n' : ''}${imported}${code}\n${hasClient ? '' : 'declare const client: import("usher-client").UsherClient\n'}export {}\n`)
    return path
  })
  const given = join(folder, 'given.d.ts')
  writeFileSync(given, GIVEN)
  const client = (name: string) => [join(root, 'client', name)]
  const program = ts.createProgram([given, ...files], {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    target: ts.ScriptTarget.ESNext,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    lib: ['lib.esnext.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
    types: [],
    jsx: ts.JsxEmit.ReactJSX,
    allowImportingTsExtensions: true,
    paths: {
      'fastify-usher/client': client('index.ts'),
      'fastify-usher/client/posts': client('posts.ts'),
      'usher-client': client('index.ts'),
      'usher-client/posts': client('posts.ts'),
      'usher-client/react': client('react.ts'),
    },
  })
  for (const [index, path] of files.entries()) {
    const problems = ts.getPreEmitDiagnostics(program, program.getSourceFile(path))
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
    t.same(problems, [], snippets[index]!.split('\n')[0] ?? '')
  }
})
