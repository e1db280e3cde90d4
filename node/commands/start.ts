import * as fastify from 'fastify'
import { readEnvironment } from '../settings/environment.ts'
import { readStartSettings } from '../preflight.ts'
import { explainPasswordMemory } from '../process/password-memory.ts'
import type { Settings } from '../settings/settings.ts'
import type { Shell } from '../terminal/shell.ts'
import { isWorker } from '../workers/handover.ts'
import type { Command } from './command.ts'

export default {
  details: 'Brings the database up to date, then runs until SIGTERM or SIGINT.',
  options: {},
  run: start,
} satisfies Command

// A function of its own, because TypeScript 6 does not rewrite the extension of an import inside the object.
async function start (_: unknown, __: unknown, shell: Shell): Promise<void> {
  // The plugin works with every version of Fastify 5. A host that keeps an older one can still run the other commands.
  if (!('LogController' in fastify)) {
    throw new Error('The node needs Fastify 5.10 or later: update it, for example with "npm install fastify@5".')
  }
  const inherited = { ...shell.env }
  // The primary has checked the port of its workers, and uses it.
  const settings = isWorker() ? await readWorkerSettings(shell) : await readStartSettings(shell)
  if (!shell.process) throw new Error('A node needs a process of its own.')
  // Also with one core: SIGHUP replaces the worker.
  if ((settings.WORKERS === 'auto' || settings.WORKERS > 1) && !isWorker()) {
    const { runPrimary } = await import('../workers/primary.ts')
    return runPrimary(settings, shell, inherited)
  }
  const { run } = await import('../run.ts')
  await run(settings, shell)
}

// They may have changed since the primary checked them.
async function readWorkerSettings (shell: Shell): Promise<Settings> {
  const settings = await readEnvironment(shell)
  const problem = explainPasswordMemory(settings)
  if (problem) throw new Error(problem)
  return settings
}
