// Usher as in a node: the plugin in a bare Fastify, without logs.
import type { AddressInfo } from 'node:net'
import Fastify from 'fastify'
import usher, { audiences, type EventName } from '../app.ts'

// The node sets this option of node:http as well (node/http/server.ts).
const app = Fastify({ forceCloseConnections: true, http: { optimizeEmptyRequests: true } })
if (process.env['METRICS']) {
  const { default: metrics } = await import('../node/metrics/metrics.ts')
  await app.register(metrics, { host: '127.0.0.1', port: 0, onListen: scrapeRegularly })
}
await app.register(usher, {
  databaseUrl: process.env['DATABASE_URL'],
  schema: process.env['SCHEMA'],
  uploadsDir: process.env['UPLOADS_DIR']!,
  uploadMaxBytes: Number(process.env['UPLOAD_MAX_BYTES'] ?? 10 * 1024 * 1024),
  ...process.env['S3_ENDPOINT'] && {
    s3: {
      endpoint: process.env['S3_ENDPOINT'],
      bucket: process.env['S3_BUCKET']!,
      accessKeyId: process.env['S3_ACCESS_KEY_ID']!,
      secretAccessKey: process.env['S3_SECRET_ACCESS_KEY']!,
      region: process.env['S3_REGION'],
    },
  },
  // No quota ends the benchmark.
  uploadQuotaBytes: Number.MAX_SAFE_INTEGER,
  uploadQuotaFiles: 1_000_000_000,
  admin: { email: 'admin@example.com', password: 'horse battery staple' },
  accessTokenSeconds: 86400,
  ...process.env['READ_BY_MEMBERS'] && { policy: { 'users:read': audiences.members } },
  ...process.env['ORGANIZATIONS'] && { organizations: true },
  // The limit is higher than any rate, but is checked.
  postsPerHour: Number(process.env['POSTS_PER_HOUR'] ?? Number.MAX_SAFE_INTEGER),
  // All clients of the benchmark have the same address.
  live: { connectionsPerNetwork: 100_000, connections: 100_000 },
})
const handled = process.env['HANDLER']
if (handled) app.usher.on(handled as EventName, () => {})
await app.listen({ port: Number(process.env['PORT'] ?? 0), host: '127.0.0.1' })
console.log(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}`)

// Prometheus scrapes every 15 seconds to a minute, so this is the worst case.
function scrapeRegularly (url: string): void {
  setInterval(() => { fetch(url).then((response) => response.text(), () => {}) }, 1000).unref()
}
process.on('SIGTERM', () => { void app.close() })
