import { spawn } from 'node:child_process'
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { createDatabase } from '../helpers/database.ts'
import { startFakeS3 } from '../helpers/fake-s3.ts'
import { nodeCommand, nodeEnvironment, startNode } from '../helpers/node.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

// `uploads move` to an S3 and back, which is killed again and again while clients of two nodes upload, read and delete.

const admin = { email: 'admin@example.com', password: 'horse battery staple' }
const server = fileURLToPath(new URL('../../node/server.ts', import.meta.url))
const FIRST_FILES = 100
const KILLS = 4

interface Stored { id: string, hash: string }

const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

t.test('13.3 every upload is readable and whole while a move is killed and repeated, to an S3 and back', async (t) => {
  const store = await startFakeS3(t)
  const { endpoint, bucket, accessKeyId, secretAccessKey, region } = store.options
  const [cwd, dataDir] = [temporaryFolder(), temporaryFolder()]
  const settings = {
    DATABASE_URL: await createDatabase(t),
    DATA_DIR: dataDir,
    S3_ENDPOINT: endpoint,
    S3_BUCKET: bucket,
    S3_ACCESS_KEY_ID: accessKeyId,
    S3_SECRET_ACCESS_KEY: secretAccessKey,
    S3_REGION: region!,
    ADMIN_EMAIL: admin.email,
    ADMIN_PASSWORD: admin.password,
    LOG_LEVEL: 'warn',
  }
  const startBoth = async (to: string) => {
    const first = await startNode(t, { settings: { ...settings, UPLOADS_TO: to }, cwd })
    return [first, await startNode(t, { settings: { ...settings, UPLOADS_TO: to }, cwd })] as const
  }
  const kept = new Map<string, Stored>()
  const deleted: string[] = []
  const problems: string[] = []
  let reads = 0

  async function useAll (to: string, work: (nodes: Awaited<ReturnType<typeof startBoth>>) => Promise<void>) {
    const nodes = await startBoth(to)
    const { token } = await nodes[0].login(admin)
    const headers = { authorization: `Bearer ${token}` }
    const end = new AbortController()
    const anyNode = () => nodes[randomInt(2)]!
    const upload = async () => {
      const bytes = randomBytes(randomInt(40_000))
      const form = new FormData()
      form.set('description', 'a file')
      form.set('file', new Blob([bytes]), 'file.bin')
      const response = await anyNode().fetch('/api/uploads', { method: 'POST', headers, body: form })
      if (response.status !== 200) return problems.push(`upload: ${response.status} ${await response.text()}`)
      const { id } = await response.json() as { id: string }
      kept.set(id, { id, hash: hashOf(bytes) })
    }
    const read = async ({ id, hash } = [...kept.values()][randomInt(kept.size)]!) => {
      const response = await anyNode().fetch(`/api/uploads/${id}`)
      const bytes = new Uint8Array(await response.arrayBuffer())
      reads++
      // Another client may have deleted it meanwhile.
      if (response.status !== 200 && !kept.has(id)) return
      if (response.status !== 200 || hashOf(bytes) !== hash) problems.push(`read of ${id}: ${response.status}`)
    }
    const remove = async () => {
      const [id] = [...kept.keys()].slice(randomInt(kept.size))
      kept.delete(id!)
      const response = await anyNode().fetch(`/api/uploads/${id}`, { method: 'DELETE', headers })
      if (response.status !== 204) problems.push(`deletion: ${response.status} ${await response.text()}`)
      deleted.push(id!)
    }
    while (kept.size < FIRST_FILES && problems.length === 0) await upload()
    const clients = [upload, () => read(), () => read(), remove].map(async (act) => {
      while (!end.signal.aborted) {
        await act()
        await delay(randomInt(60))
      }
    })
    await work(nodes).finally(() => end.abort())
    await Promise.all(clients)
    for (const one of kept.values()) await read(one)
    for (const id of deleted.slice(-50)) {
      const { status } = await anyNode().fetch(`/api/uploads/${id}`)
      if (status !== 404) problems.push(`a deleted upload: ${status}`)
    }
    for (const node of nodes) {
      node.child.kill('SIGTERM')
      await node.ended
    }
  }

  async function move (to: string, killAfterMs?: number): Promise<number | NodeJS.Signals> {
    const { command: [file, words], env } = nodeCommand([server, 'uploads', 'move', '--to', to, '--yes'])
    const child = spawn(file, words, { cwd, env: nodeEnvironment(settings, env), stdio: 'ignore' })
    const ended = once(child, 'close').then(([code, signal]) => code ?? signal)
    if (killAfterMs !== undefined) void delay(killAfterMs).then(() => child.kill('SIGKILL'))
    return ended
  }

  const files = () => readdir(`${dataDir}/uploads/files`)
  const objects = () => [...store.objects.keys()].filter((key) => key.startsWith('files/'))

  // A start takes longer than a move of a few files, so the store is slow, and kills happen in the middle.
  store.misbehave(() => delay(15))
  await useAll('folder', async () => {})
  for (const to of ['s3', 'folder']) {
    let killed = 0
    await useAll(to, async () => {
      for (let turn = 0; turn < KILLS; turn++) if (await move(to, 1500 + randomInt(2500)) === 'SIGKILL') killed++
      t.equal(await move(to), 0, `the move to ${to} ends when it is not killed`)
    })
    t.ok(killed > 0, `${killed} moves to ${to} were killed`)
    t.strictSame(problems.splice(0), [], `to ${to}`)
    t.equal((to === 's3' ? await files() : objects()).length, 0, 'nothing is left at the old place')
    t.strictSame(
      (to === 's3' ? objects().map((key) => key.slice('files/'.length)) : await files()).sort(), [...kept.keys()].sort()
    )
  }
  t.comment(`${kept.size} uploads are there, ${deleted.length} were deleted, ${reads} were read`)
})
