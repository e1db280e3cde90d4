import t from 'tap'
import { createLinkFactory } from '../../plugins/mail-links/mail-link.ts'
import { createSignUps } from '../../plugins/mail-links/sign-ups.ts'
import outbox from '../../plugins/outbox/index.ts'
import { openCore } from '../helpers/core.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { createMailer } from '../helpers/mail.ts'
import { openSql } from '../helpers/sql.ts'

t.test('11.2 sign-ups wait in a bounded queue, and closing the app completes it', async (t) => {
  const inbox = createMailer()
  const given = {
    databaseUrl: await testDatabaseUrl(), schema: uniqueSchema(t.name), mailer: inbox.mailer, signUp: true,
  }
  const { app, core } = await openCore(t, given)
  await app.register(outbox)
  const signUps = createSignUps({ ...core, links: createLinkFactory(app, core.options), mails: app.usherOutbox.mails })
  await app.ready()
  const sql = openSql(t, { options: given })
  const errors: unknown[] = []
  const log = { error: (...entry: unknown[]) => errors.push(entry.at(-1)) }
  const from = (address: string) => ({ log: log as never, languageOf: () => undefined, address })
  await sql.begin(async (trx) => {
    await trx`lock table sign_ups in access exclusive mode`
    const sign = (email: string, address: string) =>
      signUps.request({ name: 'Ada', email, passwordHash: 'x' }, from(address))
    for (let index = 0; index < 203; index++) sign(`${index}@example.com`, `2001:db8:1:${index.toString(16)}::1`)
    sign('first@example.net', '192.0.2.1')
    sign('second@example.net', '2001:db8:2::1')
  })
  await app.close()
  t.same(
    errors,
    Array.from({ length: 3 }, () => 'A sign-up is not stored because too many others are waiting'),
    'two are being stored, 200 wait'
  )
  t.equal(
    inbox.mails.length + (await sql`select 1 from outbox`).length, 202, 'what was not sent yet waits in the outbox'
  )
  t.equal(
    (await sql`select 1 from sign_ups where email like '%@example.net'`).length, 2,
    'a flood from one /48 takes no place from others'
  )
})
