import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import ts from 'typescript'
import { createUsher } from '../helpers/app.ts'

const document = readFileSync(new URL('../../docs/frameworks.md', import.meta.url), 'utf8')
const files = new Map([...document.matchAll(/^`([\w./+-]+)`[^\n]*:\n\n```(?:js|vue)\n([^]*?)^```/gm)]
  .map(([, name, text]) => [name!, text!]))

interface Recipe {
  TOKEN: string
  continueUrl (path: string): string
  userOf (token: string | undefined): Promise<{ email: string } | undefined>
  continueSession (request: Request, address: string): Promise<Response>
}

t.test('15.4 docs/frameworks.md: the server of an app gets a token by the cookie of the session, and knows the user', async (t) => {
  const { app, inject, admin } = await createUsher(t)
  const folder = t.testdir()
  const path = join(folder, 'usher.mjs')
  writeFileSync(path, files.get('usher.js')!.replace("'http://127.0.0.1:3000'", `'${await app.listen({ port: 0 })}'`))
  const { TOKEN, continueUrl, userOf, continueSession } = await import(pathToFileURL(path).href) as Recipe
  const ask = (returnTo: string, cookie?: string) => continueSession(
    new Request(`http://localhost:5173${continueUrl(returnTo)}`, cookie ? { headers: { cookie } } : {}), '192.0.2.7'
  )

  const nobody = await ask('/notes?page=2')
  t.strictSame([nobody.status, nobody.headers.get('location')], [
    303, `/accounts/login?returnTo=${encodeURIComponent(continueUrl('/notes?page=2'))}`,
  ])
  t.strictSame([await userOf(undefined), await userOf('none')], [undefined, undefined])

  const login = await inject('POST', '/api/auth/login', { payload: { email: admin.email, password: admin.password } })
  const cookie = `${login.headers['set-cookie']}`.split(';')[0]!
  const response = await ask('/notes', cookie)
  t.strictSame([response.status, response.headers.get('location')], [303, '/notes'])
  const cookies = response.headers.getSetCookie()
  t.match(cookies, [/^usher_session=.*HttpOnly/, new RegExp(`^${TOKEN}=.*; HttpOnly; Secure; SameSite=Lax; Max-Age=\\d+$`)])
  const token = new RegExp(`^${TOKEN}=([^;]+)`).exec(cookies[1]!)![1]
  t.equal((await userOf(token))!.email, admin.email)

  for (const path of ['//example.com', 'https://example.com', '\\\\example.com', 'javascript:alert(1)']) {
    const { headers } = await ask(path, cookies[0]!.split(';')[0]!)
    t.match(headers.get('location'), /^\/(?![/\\])/, path)
  }
  await inject('POST', '/api/auth/logout', { headers: { authorization: `Bearer ${token}` } })
  t.equal(await userOf(token), undefined, 'the session has ended')
})

t.test('15.4 docs/frameworks.md: each file is a module, and imports what there is', async (t) => {
  t.strictSame([...files.keys()], [
    'usher.js', 'src/routes/accounts/api/auth/continue/+server.js', 'src/hooks.server.js',
    'src/routes/notes/+page.server.js', 'src/session.js', 'src/Who.vue',
  ])
  const exported = (name: string) => [...files.get(name)!.matchAll(/^export (?:async )?(?:const|function) (\w+)/gm)].map(([, found]) => found!)
  for (const [name, text] of files) {
    const source = name.endsWith('.vue') ? /<script setup>\n([^]*?)<\/script>/.exec(text)![1]! : text
    const { diagnostics } = ts.transpileModule(source, { reportDiagnostics: true, fileName: 'file.js', compilerOptions: { allowJs: true } })
    t.strictSame(diagnostics!.map(({ messageText }) => messageText), [], name)
    for (const [, names, from] of source.matchAll(/^import \{ ([^}]*) \} from '(\$lib\/server\/usher\.js|\.\/session\.js)'/gm)) {
      const there = exported(from === './session.js' ? 'src/session.js' : 'usher.js')
      t.strictSame(names!.split(', ').filter((imported) => !there.includes(imported)), [], name)
    }
  }
})
