import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { openMailTemplates } from '../../node/mail/templates.ts'
import { createSmtpMailer } from '../../node/mail/smtp.ts'
import { slowNode } from '../helpers/deadlines.ts'
import { createRenderer } from '../../plugins/outbox/mails/render.ts'
import { readMailTemplates } from '../../plugins/outbox/mails/mail-templates.ts'
import { mailNames, mailValues, type MailName } from '../../schema/options/mail.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import type { MailTemplates, UsherOptions } from '../../schema/options/options.ts'
import { createUsher } from '../helpers/app.ts'
import { createMailer, startMailServer, tokenIn } from '../helpers/mail.ts'

const evil = 'A & B <img src=x onerror="alert(1)"> \'{{link}}\''
const escaped = 'A &amp; B &lt;img src=x onerror=&quot;alert(1)&quot;&gt; &#39;{{link}}&#39;'
const link = 'https://api.example.com/set-password?a=1&b=2#token=x'

/** Creates the renderer on a bare Fastify, and collects the lines of the log. */
async function start (t: Test, options: Pick<UsherOptions, 'mailTemplates' | 'pages'> = {}) {
  const lines: string[] = []
  const app = Fastify({ pluginTimeout: 0, logger: { stream: { write: (line: string) => { lines.push(line) } } } })
  t.teardown(() => app.close())
  const usherOptions = readOptions({ databaseUrl: 'postgres://localhost/usher', ...options })
  return { ...createRenderer({ lifecycle: app, options: { ...usherOptions, prefix: '', publicPath: '' } }), lines }
}

const valuesOf = (name: MailName) =>
  Object.fromEntries(mailValues[name].map((value) => [value, /link$|page/i.test(value) ? link : 'x'])) as never

t.test('15.2 every mail has a subject of one line, text and HTML with the product name and the same links', async (t) => {
  const { render } = await start(t, { pages: { productName: evil, color: '#fe0' } })
  for (const name of mailNames) {
    const { productName, color, textColor, ...values } = valuesOf(name) as Record<string, string>
    const { subject, text, html } = render(name, values as never)
    t.match(subject, /^[\w :,-]+$/, name)
    t.ok(text.trimEnd().endsWith(evil))
    t.match(html, `>${escaped}</p>`)
    t.notMatch(html!.replaceAll(escaped, ''), /<img|<script|\{\{|http:/)
    t.notMatch(text.replaceAll(evil, ''), /\{\{|&amp;/)
    // That with a code only has no link, which somebody could be led to open elsewhere.
    if (name === 'step-up' || name === 'account-deleted') continue
    t.ok(text.includes(link))
    t.ok(html!.includes(link.replace('&', '&amp;')))
    // The others only name the page where links to set a password lead, and may have no button.
    if (!mailValues[name].some((value) => value === 'page')) t.match(html, 'background: #fe0; color: #000000')
  }
})

t.test('15.2 a section appears if there is a value for it', async (t) => {
  const { render } = await start(t)
  const without = render('password-changed', { page: link, undoLink: '', duration: '' })
  t.match(without.text, `If it was not you, request a link to set a new password at once. Such links lead to ${link}\n`)
  t.notMatch(without.text + without.html, 'undo')
  const undo = 'https://api.example.com/undo#token=y'
  const both = render('password-changed', { page: link, undoLink: undo, duration: '7 days' })
  for (const part of [undo, link, '7 days']) t.ok(both.text.includes(part))
  t.ok(both.html!.includes(`href="${undo}"`))
})

t.test('15.2 a host may replace mails, and one that fails has its default content', async (t) => {
  const results: (() => unknown)[] = [
    () => ({ subject: 'One\r\nBcc: all@example.com\u2028 two ', text: 'Text', html: '<p>Text</p>' }),
    () => ({ subject: 'One', text: 'Text' }),
    () => undefined,
    () => { throw new Error(`cannot render ${link}`) },
    () => 'text',
    () => ({ subject: 1, text: 'x' }),
    () => Promise.resolve({ subject: 'One', text: 'Text' }),
    () => null,
  ]
  const calls: unknown[] = []
  const mailTemplates = ((name, values) => {
    calls.push([name, values, Object.isFrozen(values)])
    return results.shift()!()
  }) as MailTemplates
  const { render, lines } = await start(t, { mailTemplates, pages: { productName: 'Notes' } })
  const next = () => render('password-reset', { link, duration: '30 minutes' })
  t.same(next(), { subject: 'One Bcc: all@example.com two', text: 'Text', html: '<p>Text</p>' })
  t.same(next(), { subject: 'One', text: 'Text' })
  t.equal(next().subject, 'Set a new password')
  t.equal(lines.length, 0)
  while (results.length > 0) t.equal(next().subject, 'Set a new password')
  t.equal(lines.length, 5)
  t.match(JSON.parse(lines[0]!), { level: 50, mail: 'password-reset' })
  t.notMatch(lines.join(''), 'token')
  t.same(calls[0], [
    'password-reset',
    { productName: 'Notes', color: '#1d4ed8', textColor: '#ffffff', link, duration: '30 minutes' },
    true,
  ])
  t.throws(() => readOptions({ databaseUrl: 'postgres://localhost/usher', mailTemplates: 'folder' as never }), {
    message: 'usher: mailTemplates must be a function',
  })
})

t.test('15.2 no mail contains the name of a user', async (t) => {
  const inbox = createMailer()
  const { inject, createUser } = await createUsher(t, { mailer: inbox.mailer })
  const user = await createUser({ name: 'Visit https://evil.example' })
  await inject('POST', '/api/auth/password-reset', { payload: { email: user.email } })
  const token = await inbox.token(user.email)
  await inject('POST', '/api/auth/password-reset/confirm', { payload: { token, password: 'a password of tomorrow' } })
  const mails = await inbox.of(user.email, 2)
  t.notMatch(JSON.stringify(mails), 'evil')
  t.ok(mails.every(({ html }) => html?.startsWith('<!doctype html>')))
  t.ok(mails[0]!.html!.includes(tokenIn(mails[0]!)))
})

t.test('15.2 a folder replaces the templates that it has, and a wrong one is rejected with one sentence', async (t) => {
  const open = (files: Record<string, string>) => openMailTemplates({ MAIL_TEMPLATES: t.testdir(files) })!
  const some = open({
    'invitation.txt': 'Subject: Welcome to {{productName}}\r\n\r\nGo to {{link}} & log in.\n',
    'layout.html': '<main>{{content}}</main>',
    'notes.md': '{{x}}',
  })
  const values = { productName: 'Notes <x>', color: '#fff', textColor: '#000000', link, duration: '7 days' }
  const { subject, text, html } = some('invitation', values)!
  t.equal(subject, 'Welcome to Notes <x>')
  t.equal(text, `Go to ${link} & log in.\n`)
  t.match(html, /^<main><p>An account was created for you\.[^]+<\/main>$/)
  t.match(some('password-reset', values)!.text, /^Somebody, most likely you/)
  t.equal(openMailTemplates({}), undefined)

  const subjects = 'must begin with a line "Subject: …" and an empty line'
  const bad: [Record<string, string>, string][] = [
    [{ 'invitation.txt': 'Subject: Hello\n\n{{name}}' }, 'invitation.txt has an unknown placeholder {{name}}'],
    [{ 'invitation.html': '<p>{{undoLink}}</p>' }, 'invitation.html has an unknown placeholder {{undoLink}}'],
    [{ 'invitation.html': '{{#link}}' }, 'invitation.html has no {{/link}}'],
    [{ 'invitation.html': '{{/link}}' }, 'invitation.html has {{/link}} where no section of that name can end'],
    [
      { 'invitation.html': '{{#link}}{{#duration}}{{/link}}{{/duration}}' },
      'invitation.html has {{/link}} where no section of that name can end',
    ],
    [{ 'invitation.html': '{{{link}}}' }, 'invitation.html has braces that are no placeholder'],
    [{ 'invitation.html': '{{ link }}' }, 'invitation.html has braces that are no placeholder'],
    [{ 'invitation.html': '{{constructor}}' }, 'invitation.html has an unknown placeholder {{constructor}}'],
    [{ 'invitation.txt': 'Hello {{link}}' }, `invitation.txt ${subjects}`],
    [{ 'invitation.txt': 'Subject: \n\nHello' }, `invitation.txt ${subjects}`],
    [{ 'invitation.txt': 'Subject: a\nBcc: b\n\nHello' }, `invitation.txt ${subjects}`],
    [{ 'invitation.txt': '' }, `invitation.txt ${subjects}`],
    [{ 'layout.html': '<p></p>' }, 'layout.html must have {{content}} once'],
    [{ 'layout.html': '{{content}}{{content}}' }, 'layout.html must have {{content}} once'],
    [{ 'layout.html': '{{content}}{{link}}' }, 'layout.html has an unknown placeholder {{link}}'],
    [{ 'invitations.txt': 'x' }, 'invitations.txt is the name of no mail'],
  ]
  for (const [files, problem] of bad) {
    await t.test(problem, async (t) => {
      t.throws(() => openMailTemplates({ MAIL_TEMPLATES: t.testdir(files) }), {
        message: `MAIL_TEMPLATES must be a folder of mail templates: ${problem}.`,
      })
    })
  }
  const folder = t.testdir({ file: 'x' })
  t.throws(() => openMailTemplates({ MAIL_TEMPLATES: join(folder, 'none') }), {
    message: 'MAIL_TEMPLATES must be a folder of mail templates: it cannot be read (ENOENT).',
  })
  t.throws(() => openMailTemplates({ MAIL_TEMPLATES: join(folder, 'file') }), {
    message: 'MAIL_TEMPLATES must be a folder of mail templates: it cannot be read (ENOTDIR).',
  })
  mkdirSync(join(folder, 'invitation.txt'))
  t.throws(() => openMailTemplates({ MAIL_TEMPLATES: folder }), {
    message: 'MAIL_TEMPLATES must be a folder of mail templates: it cannot be read (EISDIR).',
  })
})

t.test('15.2 each mail has two templates, and there are no others', async (t) => {
  const files = readdirSync(new URL('../../plugins/outbox/mails/templates', import.meta.url))
  t.same(files.sort(), ['layout.html', ...mailNames.flatMap((name) => [`${name}.html`, `${name}.txt`])].sort())
  const render = readMailTemplates()
  for (const name of mailNames) for (const part of Object.values(render(name, valuesOf(name)))) t.ok(part)
})

t.test('15.2 a mail server gets both forms of a mail', async (t) => {
  const server = await startMailServer(t)
  const { mailer, close } = createSmtpMailer(server.url, 'Usher <usher@example.com>', slowNode)
  t.teardown(close)
  const mail = {
    to: 'ada@example.com',
    subject: 'Hello',
    text: `A link:\n\n${link}\n`,
    html: `<p>A link: <a href="${link}">here</a></p>\n`,
  }
  await mailer(mail)
  t.same(await server.of(mail.to, 1), [mail])
  t.match(server.raw[0], /^Content-Type: multipart\/alternative;/m)
})
