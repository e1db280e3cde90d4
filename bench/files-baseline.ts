// The baseline for files: the approach of supabase/storage, written plainly on Usher's own tables. A token is verified
// for each request, the record is read or written in a transaction that first says whose it is, and the bytes are
// streamed to a file or from it, without a hash, and without waiting until they are durable.
import { randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import fastifyJwt from '@fastify/jwt'
import fastifyMultipart from '@fastify/multipart'
import Fastify from 'fastify'
import { createClient } from '../db/driver/client.ts'

const folder = process.env['FILES_DIR']!
const sql = createClient(process.env['DATABASE_URL']!, { max: 10 })
await sql`create table if not exists bench_files (id uuid primary key, owner_id uuid not null, name text not null,
  size bigint not null, created_at timestamptz not null default now())`
const [key] = await sql`select private_key, public_key from usher.signing_keys`

const app = Fastify()
await app.register(fastifyMultipart, { limits: { fileSize: 10 * 1024 * 1024 } })
await app.register(fastifyJwt, {
  secret: { private: key!['private_key'], public: key!['public_key'] },
  sign: { algorithm: 'EdDSA' },
  verify: { algorithms: ['EdDSA'], allowedIss: 'usher', allowedAud: 'usher' },
})

app.post('/api/uploads', { onRequest: (request) => request.jwtVerify() }, async (request, reply) => {
  const { sub } = request.user as { sub: string }
  const part = (await request.file())!
  const id = randomUUID()
  await pipeline(part.file, createWriteStream(join(folder, id)))
  const { size } = await stat(join(folder, id))
  await sql.begin(async (sql) => {
    await sql`select set_config('request.jwt.claim.sub', ${sub}, true)`
    await sql`insert into bench_files (id, owner_id, name, size) values (${id}, ${sub}, ${part.filename}, ${size})`
  })
  return reply.code(201).send({ id, fileUrl: `/files/${id}` })
})

app.get<{ Params: { id: string } }>('/files/:id', async ({ params: { id } }, reply) => {
  const [file] = await sql.begin(async (sql) => {
    await sql`select set_config('request.jwt.claim.role', 'anon', true)`
    return sql`select name, size from bench_files where id = ${id}`
  })
  if (!file) return reply.code(404).send()
  return reply.type('application/octet-stream').header('content-length', file['size'])
    .send(createReadStream(join(folder, id)))
})

await app.listen({ port: 0, host: '127.0.0.1' })
console.log(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}`)
process.on('SIGTERM', () => { void app.close().then(() => sql.end()) })
