import Fastify from 'fastify'
import t from 'tap'
import usher from '../../app.ts'
import { mountOptions } from '../helpers/host.ts'

t.test('4 the log says once that a browser drops a Secure cookie, which names the setting', async (t) => {
  let log = ''
  const app = Fastify({ pluginTimeout: 0, logger: { level: 'warn', stream: { write: (line: string) => { log += line } } } })
  t.teardown(() => app.close())
  const options = await mountOptions(t)
  await app.register(usher, { ...options, publicUrl: 'https://example.com' })
  const login = async (headers: Record<string, string>) => {
    const response = await app.inject({ method: 'POST', url: '/accounts/api/auth/login', headers, payload: options.admin! })
    t.match([response.statusCode, `${response.headers['set-cookie']}`], [200, /; Secure/])
    return log.split('\n').filter((line) => line.includes('PUBLIC_URL')).map((line) => JSON.parse(line) as object)
  }
  t.same(await login({ host: 'localhost:3000' }), [], 'a browser keeps that of its own machine')
  t.same(await login({ host: '127.0.0.1:3000' }), [])
  t.same(await login({ host: 'example.com', 'x-forwarded-proto': 'https' }), [], 'a proxy that is not trusted has https')
  t.same(await login({ host: 'example.com', 'x-forwarded-proto': 'HTTPS' }), [], 'in any case')
  t.same(await login({ host: 'example.com', origin: 'https://example.com' }), [], 'a page by https')
  const warnings = await login({ host: '192.0.2.1:3000' })
  t.match(warnings, [{ level: 40, host: '192.0.2.1:3000', publicUrl: 'https://example.com' }])
  t.same(await login({ host: '192.0.2.1:3000' }), warnings, 'once')
})
