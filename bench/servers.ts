import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export interface Server {
  name: string
  url: string
  process: ChildProcess
  stop (): Promise<void>
}

/**
 * Starts a server of this folder in its own process. Resolves when it listens, which it reports by printing its URL.
 */
export async function startServer (
  name: string, env: Record<string, string>, nodeOptions: string[] = []
): Promise<Server> {
  const script = fileURLToPath(new URL(`${name}.ts`, import.meta.url))
  const child = spawn(process.execPath, [...nodeOptions, script], {
    env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const [url] = await Promise.race([
    once(createInterface({ input: child.stdout! }), 'line') as Promise<[string]>,
    once(child, 'exit')
      .then(() => { throw new Error(`${name}.ts ended before it listened; its output above says why`) }),
  ])
  return {
    name,
    url,
    process: child,
    async stop () {
      if (child.exitCode !== null) return
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

/** The options of Node.js with which a server tells its CPU time (cpu.ts). */
export const tellCpu = ['--import', new URL('cpu.ts', import.meta.url).href]

/** Returns the CPU time that a server with these options has used, in microseconds. */
export async function usageOf ({ process }: Pick<Server, 'process'>): Promise<NodeJS.CpuUsage> {
  process.send('usage')
  const [usage] = await once(process, 'message') as [NodeJS.CpuUsage]
  return usage
}

/** The same, of the process and of the kernel together. */
export async function cpuOf (server: Pick<Server, 'process'>): Promise<number> {
  const { user, system } = await usageOf(server)
  return user + system
}

/** Returns an access token of the admin that `usher.ts` creates. */
export async function login (url: string): Promise<string> {
  const response = await fetch(`${url}/api/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'admin@example.com', password: 'horse battery staple' }),
  })
  return (await response.json() as { token: string }).token
}
