import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { failStart } from '../../helpers/command.ts'
import { createDatabase } from '../../helpers/database.ts'
import { startMailServer, tokenIn } from '../../helpers/mail.ts'
import { startNode, stopNode, type ServingNode } from '../../helpers/node.ts'

const FROM = 'Usher <usher@example.com>'

t.test('4.7 mails of the node', async (t) => {
  const url = await createDatabase(t)
  const admin = { email: 'root@example.com', password: 'horse battery staple' }
  const start = (t: Test, settings: Record<string, string> = {}) => startNode(t, {
    cwd: t.testdir(),
    settings: { DATABASE_URL: url, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password, ...settings },
  })
  const post = (node: ServingNode, path: string, body: object) => node.fetch(`/api/auth/password-reset${path}`, {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
  })

  await t.test('4.7 without SMTP_URL the link is printed on the terminal and leads to a page of the node', async (t) => {
    const node = await start(t, { PRINT_SECRETS: 'true' })
    t.equal((await post(node, '', admin)).status, 202)
    const [, link = '', token = ''] = await node.said(
      /^Mail to root@example\.com: Set a new password\n[^]*^(http.+)#token=([\w-]{43})$/m
    )
    t.equal(link, `${node.url}/set-password`)
    t.match(await (await fetch(link)).text(), '<title>Set your password · Usher</title>')
    t.same([
      (await post(node, '/confirm', { token, password: 'first of the new ones' })).status,
      (await post(node, '/confirm', { token, password: 'second of the new ones' })).status,
    ], [204, 400])
    await node.login({ ...admin, password: 'first of the new ones' })
    t.notOk(node.stdout.includes(token), 'not in the log')
    t.equal(await stopNode(node), 0)
  })

  await t.test('4.7 it is not printed if the output is not a terminal', async (t) => {
    const node = await start(t)
    t.equal((await post(node, '', admin)).status, 202)
    t.equal(await stopNode(node), 0)
    t.match(node.stdout, 'Links to set a password are not sent: there is no mailer')
    t.notMatch(node.stderr, 'Mail to')
  })

  await t.test('4.7 with SMTP_URL it is mailed, even if the node stops meanwhile', async (t) => {
    const server = await startMailServer(t)
    const node = await start(t, {
      NODE_ENV: 'production',
      SMTP_URL: server.url,
      MAIL_FROM: FROM,
      PUBLIC_URL: 'https://api.example.com/',
      SIGN_UP: 'true',
    })
    t.equal((await post(node, '', admin)).status, 202)
    const signUp = { name: 'Ada', email: 'ada@example.com', password: 'violet engine notes' }
    t.equal((await node.fetch('/api/auth/sign-up', {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(signUp),
    })).status, 202)
    t.equal(await stopNode(node), 0)
    const mail = server.mails.find(({ to }) => to === admin.email)
    const signedUp = server.mails.find(({ to }) => to === signUp.email)
    t.match(signedUp!.text, `https://api.example.com/sign-up/confirm#token=${tokenIn(signedUp!)}\n`)
    t.match(mail!.text, `https://api.example.com/set-password#token=${tokenIn(mail!)}\n`)
    t.notMatch(`${node.stdout}${node.stderr}`, tokenIn(mail!))
  })
})

t.test('15.2 the node has the settings of its product, of the links on its pages, and MAIL_TEMPLATES', async (t) => {
  const [url, server, cwd] = [await createDatabase(t), await startMailServer(t), t.testdir({ mails: {} })]
  const admin = { email: 'root@example.com', password: 'horse battery staple' }
  writeFileSync(join(cwd, 'mails/password-reset.txt'), 'Subject: {{productName}}: your link\n\n{{link}}\n')
  const settings = {
    DATABASE_URL: url,
    ADMIN_EMAIL: admin.email,
    ADMIN_PASSWORD: admin.password,
    SMTP_URL: server.url,
    MAIL_FROM: 'usher@example.com',
    PUBLIC_URL: 'https://api.example.com',
    PRODUCT_NAME: 'Notes',
    PRODUCT_COLOR: '#fe0',
    PRODUCT_LOGO: '/logo.svg',
    APP_URL: 'https://app.example.com/?a=1&b=2',
    TERMS_URL: '/terms',
    PRIVACY_URL: 'https://example.com/privacy',
    MAIL_TEMPLATES: 'mails',
  }
  const node = await startNode(t, { cwd, settings })
  await node.fetch('/api/auth/password-reset', {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ email: admin.email }),
  })
  const [mail] = await server.of(admin.email, 1)
  t.equal(mail!.subject, 'Notes: your link')
  t.match(mail!.html, 'background: #fe0; color: #000000')
  const page = await (await node.fetch('/login')).text()
  t.match(page, '<title>Log in · Notes</title>')
  t.match(page, '<img src="/logo.svg" alt="Notes">')
  t.match(page, '<a class="end" href="https://app.example.com/?a=1&amp;b=2">Back to Notes</a>')
  t.match(page, '<a href="/terms">Terms</a><a href="https://example.com/privacy">Privacy</a>')

  writeFileSync(join(cwd, 'mails/invitation.html'), '{{name}}')
  const { code, stderr } = await failStart(settings, cwd)
  t.equal(code, 1)
  t.match(
    stderr,
    'MAIL_TEMPLATES must be a folder of mail templates: invitation.html has an unknown placeholder {{name}}.'
  )
})
