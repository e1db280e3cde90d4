import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Test } from 'tap'
import { until } from './until.ts'

/** Starts a program of this machine and resolves when it listens. The program gets a signal when the test ends. */
export async function runProgram (
  t: Test, port: number, [file = '', ...args]: readonly string[],
  { stop = 'SIGTERM', ...options }: SpawnOptions & { stop?: NodeJS.Signals } = {}
): Promise<ChildProcess> {
  const child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const output of [child.stdout!, child.stderr!]) {
    output.setEncoding('utf8').on('data', (text: string) => { said += text })
  }
  const ended = once(child, 'close')
  t.teardown(async () => {
    child.kill(stop)
    await ended.catch(() => {})
  })
  const failed = ended.then(() => { throw new Error(`${file} ended: ${said}`) })
  failed.catch(() => {})
  await Promise.race([until(`${file} listens`, () => listens(port)), failed])
  return child
}

function listens (port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })
}
