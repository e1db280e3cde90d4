import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { openPage } from '../helpers/browser.ts'
import { createDatabase } from '../helpers/database.ts'
import { pack, run } from '../helpers/package.ts'
import { findPort } from '../helpers/port.ts'
import { runProgram } from '../helpers/program.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'
import { until } from '../helpers/until.ts'

// Installing takes a while with an empty cache.
t.setTimeout(900_000)
const document = await readFile(join(import.meta.dirname, '../../docs/tutorial.md'), 'utf8')
// A file is a block of code that follows its name in a paragraph.
const files = [...document.matchAll(/^`([\w./-]+)`:\n\n```\w+\n([^]*?)^```/gm)]
  .map(([, name, text]) => ({ name: name!, text: text! }))
const [create, , start] = [...document.matchAll(/^```sh\n([^]*?)^```/gm)].map(([, text]) => text!.trim().split('\n'))
// The checks that npm makes on the side take longer than the installation. Nobody needs scripts of packages.
const settings = {
  npm_config_audit: 'false', npm_config_fund: 'false', npm_config_prefer_offline: 'true', npm_config_ignore_scripts: 'true',
}

t.test('15 docs/tutorial.md: what it types is an app with sign-up, mail and a page that needs a login', async (t) => {
  // Outside of the repository, so that the packages there are not found.
  const folder = join(temporaryFolder(), 'notes')
  await mkdir(folder)
  const { path: packed } = await pack(folder)
  t.ok(document.includes(`./${basename(packed)}`), 'the name of the package is that of this version')
  for (const command of create!) await run(folder, 'sh', ['-c', command], settings)
  t.strictSame(files.map(({ name }) => name), [
    'mailer.js', 'app.js', 'notes.js', 'client/notes.js', 'public/notes.html', 'public/index.html', 'Dockerfile',
    '.dockerignore', 'compose.yaml',
  ])
  for (const { name, text } of files) await writeFile(join(folder, name), text)
  t.equal(start![0], 'npm run build')
  await run(folder, 'sh', ['-c', start![0]!])

  const databaseUrl = await createDatabase(t, { empty: true })
  const port = await findPort()
  const url = `http://localhost:${port}`
  t.match(start![1], /^DATABASE_URL=\S+ npm start$/)
  const child = await runProgram(t, port, [process.execPath, 'app.js'], {
    cwd: folder, env: { ...process.env, NODE_OPTIONS: '', DATABASE_URL: databaseUrl, PORT: `${port}`, PUBLIC_URL: url },
  })
  let printed = ''
  child.stdout!.on('data', (text: string) => { printed += text })

  const { page, foreign, problems } = await openPage(t, url)
  await page.getByRole('link', { name: 'your notes' }).click()
  await page.waitForURL(/\/login\?returnTo=%2Fnotes\.html$/)
  t.match(problems.splice(0), [/401/], 'nobody is logged in')
  await page.goto(`${url}/`)
  await page.getByRole('link', { name: 'Sign up' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Ada')
  await page.getByLabel('E-mail address').fill('ada@example.com')
  await page.getByLabel('Password', { exact: true }).fill('difference engine notes')
  await page.getByRole('button', { name: 'Create account' }).click()
  await until('the mail is printed', () => /^http:\S+#token=\S+$/m.test(printed))
  await page.goto(/^http:\S+#token=\S+$/m.exec(printed)![0])
  await page.locator('form button').click()
  await page.waitForURL(`${url}/notes.html`)
  await page.getByRole('heading', { name: 'Notes of Ada' }).waitFor()
  await page.getByLabel('New note').fill('The engine weaves <b>algebraic</b> patterns')
  await page.getByRole('button', { name: 'Add' }).click()
  await page.getByRole('listitem').getByText('The engine weaves <b>algebraic</b> patterns').waitFor()
  await page.reload()
  await page.getByRole('listitem').getByText('patterns').waitFor()
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.waitForURL(/\/login/)
  t.equal((await fetch(`${url}/notes`)).status, 401)
  t.strictSame({ foreign, problems }, { foreign: [], problems: [] })

  const dockerfile = await readFile(join(folder, 'Dockerfile'), 'utf8')
  const installs = /^RUN (npm .*)$/m.exec(dockerfile)![1]!
  const deployed = join(temporaryFolder(), 'deployed')
  await run(folder, 'sh', ['-c', `mkdir -p ${deployed} && cp -r package.json package-lock.json *.tgz *.js public ${deployed}`])
  await run(deployed, 'sh', ['-c', installs], settings)
  const { services } = parse(await readFile(join(folder, 'compose.yaml'), 'utf8')) as { services: { app: { environment: object } } }
  t.strictSame(Object.keys(services), ['app', 'database', 'proxy'])
  t.ok(Object.keys(services.app.environment).every((name) => document.includes(`${name}`)))
  const behind = await findPort()
  await runProgram(t, behind, [process.execPath, 'app.js'], {
    cwd: deployed,
    env: {
      PATH: process.env['PATH'],
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: `${behind}`,
      DATABASE_URL: await createDatabase(t, { empty: true }),
      SECRET: 'a secret of the deployment',
      PUBLIC_URL: 'https://notes.example.com',
      SMTP_URL: 'smtp://127.0.0.1:9',
      MAIL_FROM: 'Notes <notes@example.com>',
      ADMIN_EMAIL: 'me@example.com',
      ADMIN_PASSWORD: 'horse battery staple',
    },
  })
  const login = await fetch(`http://127.0.0.1:${behind}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'me@example.com', password: 'horse battery staple' }),
  })
  t.equal(login.status, 200)
  t.match(login.headers.get('set-cookie'), /; Secure/)
})
