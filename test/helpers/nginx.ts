import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { findPort } from './port.ts'
import { runProgram } from './program.ts'

/** Starts nginx with `docs/nginx.conf` in front of two nodes and returns its URL. It is stopped when the test ends. */
export async function startNginx (t: Test, folder: string, nodes: readonly { url: string }[]): Promise<string> {
  const port = await findPort()
  let site = await readFile(join(import.meta.dirname, '../../docs/nginx.conf'), 'utf8')
  const set = (what: string, value: string) => {
    if (!site.includes(what)) throw new Error(`docs/nginx.conf has no ${what}`)
    site = site.replaceAll(what, value)
  }
  set('listen 80;', `listen 127.0.0.1:${port};`)
  for (const [index, { url }] of nodes.entries()) set(`127.0.0.1:${3000 + index} `, `${new URL(url).host} `)

  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'site.conf'), site)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${name};`)
  await writeFile(join(folder, 'nginx.conf'), `
    ${process.getuid?.() === 0 ? 'user root;' : ''}
    worker_processes 2;
    pid nginx.pid;
    error_log error.log;
    events {}
    http {
      access_log off;
      ${temporary.join('\n')}
      include site.conf;
    }`)
  await runProgram(
    t, port, ['/usr/sbin/nginx', '-p', folder, '-c', 'nginx.conf', '-e', 'error.log', '-g', 'daemon off;']
  )
  return `http://127.0.0.1:${port}`
}
