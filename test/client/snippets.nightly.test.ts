import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Fastify from 'fastify'
import t from 'tap'
import ts from 'typescript'
import usher from '../../app.ts'
import { mountOptions } from '../helpers/host.ts'

const root = join(import.meta.dirname, '../..')

// What the reader has: values of forms, and functions of the page.
const GIVEN = `
declare const email: string, password: string, token: string, id: string, title: string, baseUrl: string, apiKey: string
declare const file: File
declare function askForCode (): Promise<string>
declare function show (...values: unknown[]): void
declare function showMember (user: { name: string }): void
declare function showLogin (text: string): void
declare module '*.css' {}
`
const CLIENT = "import { createUsherClient, unwrap, UsherError } from 'usher-client'\n"

t.test('15.4 every snippet of docs/client.md compiles', async (t) => {
  const document = readFileSync(join(root, 'docs/client.md'), 'utf8')
  const snippets = [...document.matchAll(/^( *)```(?:js|ts|tsx)\n([^]*?)^\1```$/gm)]
    .map(([, indent, code]) => code!.replaceAll(new RegExp(`^${indent}`, 'gm'), ''))
    // Those of the server, and the recipes for Vite and Next.js, are run with the package.
    .filter((code) => !/fastify/.test(code.replaceAll('fastify-usher/client', '')) &&
      !/app\.register|from 'vite'|from 'next\//.test(code))
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
      'fastify-usher/client/react': client('react.ts'),
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

t.test('15.4 the proxy of the recipe for Vite passes on every path of Usher, and none of an app', async (t) => {
  const document = readFileSync(join(root, 'docs/client.md'), 'utf8')
  const [, written = ''] = /^ *'(\^\/\(.*)': \{$/m.exec(document) ?? []
  const proxied = new RegExp(written.replaceAll('\\\\', '\\'))
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  const paths = new Set<string>()
  // Some programs encode the hash of a link.
  app.addHook('onRoute', ({ url }) => { paths.add(url.replace(/:link\(.*/, '%23token=x')) })
  await app.register(usher, {
    ...await mountOptions(t, ''), console: true, signUp: true, loginMail: true, mailer: () => {},
  })
  t.ok(paths.size > 50, `${paths.size}`)
  t.same([...paths].filter((path) => !proxied.test(path)), [])
  const ofApp = ['/', '/src/main.tsx', '/@vite/client', '/accounting', '/logins', '/docsearch', '/favicon.ico', '/node_modules/a.js']
  t.same(ofApp.filter((path) => proxied.test(path)), [])
})
