import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { createMailer } from '../helpers/mail.ts'
import { userFields } from '../helpers/user-fields.ts'

t.test('15.2 the settings of a login name the fields that users may write, with what forms need of them', async (t) => {
  const { inject } = await createUsher(t, { userFields })
  const { statusCode, headers, body } = await inject('GET', '/api/auth/settings')
  t.equal(statusCode, 200)
  t.strictSame(JSON.parse(body), {
    signUp: false,
    loginMail: false,
    providers: [],
    fields: {
      properties: {
        bio: {
          type: 'string', title: 'Bio', description: 'A text about the user', 'x-read': 'anyone', 'x-write': 'owner', maxLength: 200,
        },
        phone: { type: 'string', title: 'Phone', 'x-read': 'owner', 'x-write': 'owner' },
        newsletter: { type: 'boolean', title: 'Newsletter', 'x-read': 'owner', 'x-write': 'owner' },
        tags: { type: 'json', title: 'Tags', 'x-read': 'anyone', 'x-write': 'owner' },
        settings: {
          type: 'json', title: 'Settings', default: { theme: 'light' }, 'x-read': 'owner', 'x-write': 'owner',
        },
      },
    },
  })
  t.equal((await inject('GET', '/api/auth/settings', { headers: { 'if-none-match': `${headers['etag']}` } })).statusCode, 304)
})

t.test('15.2 they say what the options offer, and limits of a field without those of its type', async (t) => {
  const { mailer } = createMailer()
  const { inject } = await createUsher(t, {
    mailer,
    publicUrl: 'https://example.com',
    signUp: true,
    loginMail: true,
    userFields: {
      type: 'object',
      properties: {
        shoeSize: { type: 'integer', maximum: 60, 'x-write': 'owner' },
        color: { enum: ['red', 'blue'], type: 'string', title: 'Favorite color', 'x-write': 'owner' },
        secretScore: { type: 'integer' },
      },
    },
  })
  t.strictSame((await inject('GET', '/api/auth/settings')).json(), {
    signUp: true,
    loginMail: true,
    providers: [],
    fields: {
      properties: {
        shoeSize: { type: 'integer', title: 'Shoe size', maximum: 60, 'x-read': 'owner', 'x-write': 'owner' },
        color: { type: 'string', title: 'Favorite color', enum: ['red', 'blue'], 'x-read': 'owner', 'x-write': 'owner' },
      },
    },
  })
})
