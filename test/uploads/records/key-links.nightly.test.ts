import t from 'tap'
import { createUsher, sharedUsher, type LoggedIn } from '../../helpers/app.ts'
import { withConsole } from '../../helpers/console.ts'
import { fieldPart, filePart, post } from '../../helpers/uploads.ts'

const usher = await sharedUsher({ console: true })
const second = await createUsher(t, usher.options)
const { admin, inject, app } = usher

async function createKey ({ headers }: LoggedIn, name = 'a key') {
  const { id, key } = (await inject('POST', '/api/auth/keys', { headers, payload: { name } })).json()
  return { id: id as string, headers: { authorization: `Bearer ${key}` } }
}

async function keep (owner: LoggedIn): Promise<string> {
  const parts = [filePart('Secret text'), fieldPart('description', 'D'), fieldPart('visibility', 'private')]
  return (await post(usher, parts, owner)).json().id
}

async function share (headers: { authorization: string }, id: string) {
  const response = await inject('POST', `/api/uploads/${id}/links`, { headers, payload: { seconds: 3600 } })
  if (response.statusCode !== 201) throw new Error(`share: ${response.statusCode} ${response.body}`)
  return response.json() as { id: string, url: string, keyId: string | null, keyName: string | null }
}

const works = async ({ url }: { url: string }) => (await second.inject('GET', url)).statusCode === 200

/** Creates a user with an upload, a key, and two links: one that was created with the key, and one that was not. */
async function prepare () {
  const owner = await usher.createUser()
  const upload = await keep(owner)
  const key = await createKey(owner)
  const [ofKey, own] = [await share(key.headers, upload), await share(owner.headers, upload)]
  return { owner, upload, key, ofKey, own }
}

t.test('13.2 the list of links says with which API key one was created, also when the key is gone', async (t) => {
  const { owner: { headers, id }, upload, key, ofKey, own } = await prepare()
  t.match(ofKey, { keyId: key.id, keyName: 'a key', createdBy: id })
  t.match(own, { keyId: null, keyName: null })
  const list = async () => (await inject('GET', `/api/uploads/${upload}/links`, { headers })).json()
  t.match(await list(), [{ keyId: null, keyName: null }, { keyId: key.id, keyName: 'a key' }])
  const exported = (await inject('GET', `/api/users/${id}/export`, { headers })).json()
  t.match(exported.uploads[0].links, [{ keyId: null }, { keyId: key.id, keyName: 'a key' }])
  t.equal((await inject('DELETE', `/api/auth/keys/${key.id}`, { headers })).statusCode, 204)
  t.match(await list(), [{ keyId: null, keyName: null }, { keyId: key.id, keyName: null }])
  t.ok(await works(ofKey), 'links belong to their user')
})

t.test('13.2 the owner of an upload does not learn how somebody else calls a key', async (t) => {
  const { owner, upload } = await prepare()
  const key = await createKey(admin, 'a key of the admin')
  t.match(await share(key.headers, upload), { keyId: key.id, keyName: null })
  const [first] = (await inject('GET', `/api/uploads/${upload}/links`, { headers: owner.headers })).json()
  t.match(first, { keyId: key.id, keyName: null, createdBy: admin.id })
  t.equal((await inject('DELETE', `/api/auth/keys/${key.id}?revokeLinks=true`, { headers: admin.headers })).statusCode, 204)
  const log = await inject('GET', `/api/audit?user=${owner.id}&action=upload-link.revoke`, { headers: admin.headers })
  t.match(log.json(), [{ actorId: admin.id, userId: owner.id }])
})

t.test('17.1 the deletion of a key revokes the links that were created with it if it says so, on every node', async (t) => {
  const { send, open } = withConsole(usher)
  const cookie = await open(admin)
  type Given = Awaited<ReturnType<typeof prepare>>
  const ways: Record<string, (given: Given, revokes: boolean) => Promise<unknown>> = {
    'its user': ({ owner: { headers }, key }, revokes) =>
      inject('DELETE', `/api/auth/keys/${key.id}${revokes ? '?revokeLinks=true' : '?revokeLinks=false'}`, { headers }),
    'an admin': ({ owner, key }, revokes) =>
      inject('DELETE', `/api/users/${owner.id}/keys/${key.id}?revokeLinks=${revokes}`, { headers: admin.headers }),
    'the host': ({ owner, key }, revokeLinks) => app.usher.apiKeys.delete(owner.id, key.id, { revokeLinks }),
    'the console, on the page of the user': ({ owner, key }, revokes) =>
      send(`/console/users/${owner.id}/keys/${key.id}/delete`, { confirmed: 'yes', ...revokes && { revokeLinks: 'yes' } }, { cookie }),
    'the console, in the list of keys': ({ owner, key }, revokes) =>
      send(`/console/keys/${owner.id}/${key.id}/delete`, { confirmed: 'yes', ...revokes && { revokeLinks: 'yes' } }, { cookie }),
  }
  for (const [who, remove] of Object.entries(ways)) {
    for (const revokes of [true, false]) {
      const given = await prepare()
      t.ok(await works(given.ofKey))
      await remove(given, revokes)
      t.equal((await inject('GET', '/api/protected', { headers: given.key.headers })).statusCode, 401, who)
      t.equal(await works(given.ofKey), !revokes, `${who}, ${revokes}`)
      t.ok(await works(given.own), 'other links go on')
      const { headers } = given.owner
      const log = await inject('GET', `/api/audit?user=${given.owner.id}&action=upload-link.revoke`, { headers })
      t.equal(log.json().length, revokes ? 1 : 0)
    }
  }
  const { owner, key, ofKey } = await prepare()
  const wrong = await inject('DELETE', `/api/auth/keys/${key.id}?revokeLinks=maybe`, { headers: owner.headers })
  t.equal(wrong.statusCode, 400)
  await t.rejects(app.usher.apiKeys.delete(owner.id, key.id, { revokeLinks: 'yes' as never }), TypeError)
  await t.rejects(app.usher.apiKeys.delete(owner.id, key.id, null as never), TypeError)
  t.ok(await works(ofKey))
})

t.test('13.2 a link that is created while its key is deleted is revoked, too, or not created', async (t) => {
  for (let round = 0; round < 5; round++) {
    const { owner, upload, key } = await prepare()
    const [created] = await Promise.all([
      second.inject('POST', `/api/uploads/${upload}/links`, { headers: key.headers, payload: { seconds: 60 } }),
      inject('DELETE', `/api/auth/keys/${key.id}?revokeLinks=true`, { headers: owner.headers }),
    ])
    t.ok([201, 401].includes(created.statusCode), `${created.statusCode}`)
    if (created.statusCode === 201) t.notOk(await works(created.json()))
  }
})
