import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { openMailTemplates } from '../../node/mail/templates.ts'
import { createSmtpMailer } from '../../node/mail/smtp.ts'
import { slowNode } from '../helpers/deadlines.ts'
import { createRenderer } from '../../plugins/outbox/mails/render.ts'
import { mailNames, mailValues, type MailName } from '../../schema/options/mail.ts'
import { placeholdersOf } from '../../schema/options/mail-texts.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import type { MailTemplates, UsherOptions } from '../../schema/options/options.ts'
import { languageTags } from '../../schema/translations/languages.ts'
import { mailTexts } from '../../schema/translations/mails/index.ts'
import { createUsher } from '../helpers/app.ts'
import { createMailer, startMailServer, tokenIn } from '../helpers/mail.ts'

const evil = 'A & B <img src=x onerror="alert(1)"> \'{{link}}\''
const escaped = 'A &amp; B &lt;img src=x onerror=&quot;alert(1)&quot;&gt; &#39;{{link}}&#39;'
const link = 'https://api.example.com/set-password?a=1&b=2#token=x'

/** Creates the renderer on a bare Fastify, and collects the lines of the log. */
async function start (t: Test, options: Pick<UsherOptions, 'mailTemplates' | 'mailTexts' | 'pages'> = {}) {
  const lines: string[] = []
  const app = Fastify({ pluginTimeout: 0, logger: { stream: { write: (line: string) => { lines.push(line) } } } })
  t.teardown(() => app.close())
  const usherOptions = readOptions({ databaseUrl: 'postgres://localhost/usher', ...options })
  return { ...createRenderer({ lifecycle: app, options: { ...usherOptions, prefix: '', publicPath: '' } }), lines }
}

const valuesOf = (name: MailName) => Object.fromEntries(mailValues[name].map((value) =>
  [value, value === 'language' ? 'en' : /link$|page/i.test(value) ? link : 'x'])) as never
/** The values of a mail that are not the same for all. */
function givenOf (name: MailName) {
  const { productName, color, textColor, language, direction, ...values } = valuesOf(name) as Record<string, unknown>
  return { ...values, ...'duration' in values && { duration: 86400 } } as never
}

t.test('15.2 every mail has a subject of one line, text and HTML with the product name and the same links', async (t) => {
  const { render } = await start(t, { pages: { productName: evil, color: '#fe0' } })
  for (const name of mailNames) {
    const { subject, text, html } = render(name, undefined, givenOf(name))
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
  const without = render('password-changed', '', { page: link, undoLink: '', duration: 604_800 })
  t.match(without.text, `If it was not you, request a link to set a new password at once.\n\nSuch links lead to ${link}\n`)
  t.notMatch(without.text + without.html, 'undo')
  const undo = 'https://api.example.com/undo#token=y'
  const both = render('password-changed', '', { page: link, undoLink: undo, duration: 604_800 })
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
  const next = () => {
    const { subject, text, html } = render('password-reset', 'de', { link, duration: 1800 })
    return { subject, text, ...html !== undefined && { html } }
  }
  t.same(next(), { subject: 'One Bcc: all@example.com two', text: 'Text', html: '<p>Text</p>' })
  t.same(next(), { subject: 'One', text: 'Text' })
  t.equal(next().subject, 'Neues Passwort festlegen')
  t.equal(lines.length, 0)
  while (results.length > 0) t.equal(next().subject, 'Neues Passwort festlegen')
  t.equal(lines.length, 5)
  t.match(JSON.parse(lines[0]!), { level: 50, mail: 'password-reset' })
  t.notMatch(lines.join(''), 'token')
  t.same(calls[0], [
    'password-reset',
    {
      productName: 'Notes',
      color: '#1d4ed8',
      textColor: '#ffffff',
      language: 'de',
      direction: 'ltr',
      link,
      duration: '30 Minuten',
    },
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
  const values = { productName: 'Notes <x>', color: '#fff', textColor: '#000000', language: 'en', direction: 'ltr', link, duration: '7 days' }
  const { subject, text, html } = some('invitation', values)!
  t.equal(subject, 'Welcome to Notes <x>')
  t.equal(text, `Go to ${link} & log in.\n`)
  t.match(html, /^<main><h1 [^>]+>You have an account: set its password<\/h1>\n<p>An account was created[^]+<\/main>$/)
  t.equal(some('invitation', { ...values, language: 'de' })!.text, text, 'in every language')
  t.match(some('password-reset', { ...values, language: 'de' })!.text, /^Jemand, vermutlich Sie/)
  const german = open({ 'invitation.de.txt': 'Subject: Willkommen\n\n{{link}}' })
  t.equal(german('invitation', { ...values, language: 'de' })!.subject, 'Willkommen')
  t.equal(german('invitation', values)!.subject, 'You have an account: set its password')
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
    [{ 'invitation.it.txt': 'x' }, 'invitation.it.txt is the name of no mail'],
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

t.test('15.2 every language has every text, with the same placeholders, and none is left in English', async (t) => {
  const own: Record<string, Record<string, Record<string, string>>> = mailTexts
  t.strictSame(Object.keys(own), languageTags)
  t.strictSame(Object.keys(own.en!).sort(), ['common', ...mailNames].sort())
  for (const [tag, texts] of Object.entries(own)) {
    t.strictSame(Object.keys(texts), Object.keys(own.en!), tag)
    for (const [mail, members] of Object.entries(texts)) {
      t.strictSame(Object.keys(members), Object.keys(own.en![mail]!), `${tag} ${mail}`)
      for (const [name, text] of Object.entries(members)) {
        const english = own.en![mail]![name]!
        t.strictSame(placeholdersOf(text), placeholdersOf(english), `${tag} ${mail} ${name}`)
        if (tag !== 'en') t.not(text, english, `${tag} ${mail} ${name}`)
        t.notMatch(text, /[<>&]| {2}|\s$/)
      }
    }
  }
})

t.test('15.2 mails are in the language that their reader prefers, with a heading, a button and a short link', async (t) => {
  const { render } = await start(t, { pages: { productName: 'Notes' } })
  const expected: [accepted: string, tag: string, direction: string, duration: string][] = [
    ['de-CH, en;q=0.5', 'de', 'ltr', '30 Minuten'],
    ['fr', 'fr', 'ltr', '30 minutes'],
    ['es-MX', 'es', 'ltr', '30 minutos'],
    ['pt-BR', 'pt', 'ltr', '30 minutos'],
    ['ja', 'ja', 'ltr', '30 分'],
    ['zh-CN', 'zh-Hans', 'ltr', '30分钟'],
    ['ar-EG', 'ar', 'rtl', '30 دقيقة'],
    ['tlh, *', 'en', 'ltr', '30 minutes'],
    ['\0"<', 'en', 'ltr', '30 minutes'],
  ]
  for (const [accepted, tag, direction, duration] of expected) {
    const { subject, text, html } = render('password-reset', accepted, { link, duration: 1800 })
    const texts = mailTexts[tag as 'en']['password-reset']
    t.equal(subject, texts.subject)
    t.ok(text.replaceAll('\u00a0', ' ').includes(duration), `${tag}: ${duration}`)
    t.ok(text.includes(`\n${link}\n`), 'the text has the whole link')
    t.ok(html!.startsWith(`<!doctype html>\n<html lang="${tag}" dir="${direction}">`))
    t.ok(html!.includes(`>${subject}</h1>`))
    t.ok(html!.includes(`>${texts.button}</a>`))
    t.match(html, 'dir="ltr">api.example.com/set-password?a=1&amp;b=2</a>')
  }
  for (const tag of languageTags) {
    for (const name of mailNames) {
      const { subject, text, html } = render(name, tag, givenOf(name))
      t.ok(subject)
      t.notMatch(text + html, /\{\{|undefined/)
    }
  }
})

t.test('15.2 files of a folder take precedence over texts, which all other mails have', async (t) => {
  const open = (files: Record<string, string>, mailTexts: unknown) => openMailTemplates({
    MAIL_TEMPLATES: t.testdir(files), file: { options: { mailTexts } } as never,
  })!
  const texts = {
    it: { invitation: { subject: 'Benvenuto' }, login: { subject: 'Accedi', button: 'Accedi ora' } },
    en: { invitation: { subject: 'Come in' }, common: { fallback: 'Or use this link:' } },
  }
  const files = { 'invitation.en.txt': 'Subject: Of the file\n\n{{link}}\n', 'login.it.html': '<p>{{code}}</p>', 'layout.html': '<main>{{content}}</main>' }
  const render = open(files, texts)
  const values = (language: string) =>
    ({ productName: 'Notes', color: '#fff', textColor: '#000000', language, direction: 'ltr', link, duration: '7', code: '1' })
  t.equal(render('invitation', values('en'))!.subject, 'Of the file')
  t.match(render('invitation', values('en'))!.html, /^<main>[^]*Or use this link:/, 'the other half has the texts')
  t.equal(render('invitation', values('it'))!.subject, 'Benvenuto', 'the file is for another language')
  t.equal(render('login', values('it'))!.subject, 'Accedi')
  t.match(render('login', values('it'))!.html, /^<main>\s*<p>1<\/p>\s*<\/main>$/, 'a file of a language that was added')
  t.match(render('login', values('en'))!.text, 'Open this link')
  t.throws(() => open({ 'login.he.txt': '' }, texts), /login\.he\.txt is the name of no mail/)
  t.throws(() => open({}, { it: { invite: {} } }), { message: 'usher: mailTexts.it.invite: there is no such mail' })
})

t.test('15.2 the page that a mail names is a link, in HTML', async (t) => {
  const { render } = await start(t)
  const page = 'https://api.example.com/forgot-password'
  for (const name of ['passkey-removed', 'ways-removed', 'totp-removed'] as const) {
    const { text, html } = render(name, 'ar', { page } as never)
    t.match(text, page)
    t.match(html, new RegExp(`<a [^>]*href="${page}"[^>]*>api\\.example\\.com/forgot-password</a>`), name)
  }
})

t.test('15.2 a host replaces texts of mails and adds a language; what is wrong is said', async (t) => {
  const { render } = await start(t, {
    mailTexts: {
      it: { 'step-up': { subject: 'Il tuo codice', text: 'Inseriscilo entro {{duration}}:' } },
      de: { 'step-up': { subject: 'Dein Code' } },
      he: {},
    },
  })
  const codeIn = (accepted: string) => render('step-up', accepted, { code: '1234 5678', duration: 600 })
  t.equal(codeIn('it').subject, 'Il tuo codice')
  t.match(codeIn('it').text, /^Inseriscilo entro 10 minuti:\n\n1234 5678\n\nIf it was not you/)
  t.equal(codeIn('de').subject, 'Dein Code')
  t.match(codeIn('de').text, /^Jemand, der in Ihrem Konto/)
  t.match(codeIn('he').html, '<html lang="he" dir="rtl">')
  for (const [language, tag] of [['fr', 'fr'], ['de-AT', 'de'], ['tlh', 'en']] as const) {
    const { render } = await start(t, { pages: { language } })
    for (const accepted of [undefined, 'ja']) {
      t.equal(render('account-deleted', accepted, {}).subject, mailTexts[tag]['account-deleted'].subject,
        `pages.language ${language} is the only language, as of the pages`)
    }
  }
  const wrong: [mailTexts: unknown, problem: string][] = [
    ['it', 'mailTexts must be an object'],
    [{ italian_: {} }, 'mailTexts.italian_: a language has a tag such as it or pt-PT (BCP 47)'],
    [{ DE: {} }, 'mailTexts.DE: a language has a tag such as it or pt-PT (BCP 47)'],
    [{ it: { invite: {} } }, 'mailTexts.it.invite: there is no such mail'],
    [{ it: { constructor: {} } }, 'mailTexts.it.constructor: there is no such mail'],
    [{ it: { login: { toString: 'x' } } }, 'mailTexts.it.login.toString: there is no such text'],
    [{ it: { login: [] } }, 'mailTexts.it.login must be an object'],
    [{ it: { login: { subject: 1 } } }, 'mailTexts.it.login.subject must be a text of one line, with at most 2000 characters'],
    [{ it: { login: { subject: 'a\nb' } } }, 'mailTexts.it.login.subject must be a text of one line, with at most 2000 characters'],
    [{ it: { login: { text: 'x' } } }, 'mailTexts.it.login.text must have the placeholders {{duration}}'],
    [{ it: { login: { subject: '{{link}}' } } }, 'mailTexts.it.login.subject must have no placeholder'],
    [{ it: { login: { subject: '{{{' } } }, 'mailTexts.it.login.subject must have no placeholder'],
  ]
  for (const [mailTexts, problem] of wrong) {
    t.throws(() => readOptions({ databaseUrl: 'postgres://localhost/usher', mailTexts: mailTexts as never }), {
      message: `usher: ${problem}`,
    })
  }
})

t.test('15.2 the language is that of who causes the mail for the own account; admins do not choose it', async (t) => {
  const inbox = createMailer()
  const { inject, admin, createUser } = await createUsher(t, { mailer: inbox.mailer })
  const user = await createUser()
  const french = { 'accept-language': 'fr' }
  await inject('POST', '/api/auth/password-reset', { payload: { email: user.email }, headers: french })
  t.equal((await inbox.of(user.email, 1))[0]!.subject, mailTexts.fr['password-reset'].subject)
  await inject('POST', '/api/auth/keys', {
    payload: { name: 'Key' }, headers: { ...user.headers, 'accept-language': 'ar' },
  })
  const [, added] = await inbox.of(user.email, 2)
  t.equal(added!.subject, mailTexts.ar['api-key-added'].subject)
  t.match(added!.html, 'dir="rtl"')
  await inject('PATCH', `/api/users/${user.id}`, {
    payload: { email: `new-${user.email}` }, headers: { ...admin.headers, 'accept-language': 'ja' },
  })
  t.equal((await inbox.of(user.email, 3))[2]!.subject, mailTexts.en['email-changed'].subject)
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
