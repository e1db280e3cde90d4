import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import type { Test } from 'tap'
import { nodeCommand } from './node.ts'

/** A process whose input and output are a terminal. */
export interface TerminalProcess {
  /** Everything that has appeared on the terminal, without colors. */
  readonly output: string
  readonly ended: Promise<number>
  /** Types on the terminal. Control characters have their effect, such as Ctrl-C. */
  type (keys: string): void
  /** Resolves when the terminal shows a text. Rejects if the process ends first. */
  shows (text: string | RegExp): Promise<RegExpMatchArray>
}

/** Runs Node.js with arguments on a terminal, by the program `script` of util-linux. */
export function spawnOnTerminal (
  t: Test, args: readonly string[], { cwd, settings }: { cwd: string, settings: Record<string, string> }
): TerminalProcess {
  const { command: [file, words], env } = nodeCommand(args)
  // Without exec, the shell would get the signals, too.
  const line = `exec ${[file, ...words].map((word) => `'${word}'`).join(' ')}`
  const child = spawn('script', ['-qfec', line, '/dev/null'], {
    cwd,
    env: { ...env, SHELL: '/bin/sh', TERM: 'xterm-256color', NO_COLOR: '', ...settings },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    // eslint-disable-next-line no-control-regex
    output = (output + text).replaceAll(/\u001B\[[\d;]*[A-Za-z]/g, '').replaceAll('\r\n', '\n')
  })
  child.stdin.on('error', () => {})
  let isOver = false
  const ended = once(child, 'close').then(([code]) => {
    isOver = true
    return code as number
  })
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
  return {
    ended,
    get output () { return output },
    type: (keys) => { child.stdin.write(keys) },

    async shows (text) {
      for (;;) {
        const match = output.match(text)
        if (match) return match
        if (isOver) throw new Error(`the process ended: ${output}`)
        const waiting = new AbortController()
        const { signal } = waiting
        const changed = once(child.stdout, 'data', { signal }).catch(() => {})
        await Promise.race([changed, ended, setTimeout(1_000, undefined, { signal, ref: false }).catch(() => {})])
        waiting.abort()
      }
    },
  }
}
