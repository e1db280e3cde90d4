import { parseArgs } from 'node:util'
import { print } from '../print.ts'
import type { Command } from './command.ts'

// Loaded when asked for: the node's start shall not wait for what it does not need.
const commands: Record<string, () => Promise<{ default: Command }>> = {
  start: () => import('./start.ts'),
  migrate: () => import('./migrate.ts'),
  'admin create': () => import('./admin-create.ts'),
  'keys rotate': () => import('./keys-rotate.ts'),
  'sessions end': () => import('./sessions-end.ts'),
  'uploads clean': () => import('./uploads-clean.ts'),
}

const helpOption = { help: { type: 'boolean', short: 'h' } } as const

/**
 * Runs the command that the arguments name, `start` without any. What goes wrong is said in one sentence, and the
 * process ends with 1; with 2 where the arguments are wrong.
 */
export async function main (given: string[]): Promise<void> {
  const words = given.slice(0, given.findIndex((word) => word.startsWith('-')) >>> 0)
  if (words.length === 0 && given.some((word) => word === '--help' || word === '-h')) return console.log(await help())
  const name = words.join(' ') || 'start'
  if (!Object.hasOwn(commands, name)) return refuse(`There is no command ${name}.`)
  const { default: command } = await commands[name]!()
  let values: Parameters<Command['run']>[0]
  try {
    ({ values } = parseArgs({ args: given.slice(words.length), options: { ...command.options, ...helpOption } }))
  } catch (error) {
    // Its first sentence: the second tells how to pass what begins with a hyphen.
    return refuse(`${(error as Error).message.split('. ')[0]!.replace(/\.$/, '')}.`, `usher ${name} --help`)
  }
  if (values['help']) return console.log(`Usage: usher ${name}${Object.keys(command.options).length > 0 ? ' [options]' : ''}\n\n${command.summary}\n\n${command.details}`)
  await command.run(values).catch((error: Error) => {
    print(error.message)
    process.exit(1)
  })
}

async function help (): Promise<string> {
  const lines = await Promise.all(Object.entries(commands).map(async ([name, load]) => `  ${name.padEnd(14)}${(await load()).default.summary}`))
  return `Usage: usher [command] [options]\n\n${lines.join('\n')}\n\nSettings come from the environment and from .env; see the README. usher <command> --help says more.`
}

function refuse (sentence: string, where = 'usher --help'): void {
  print(sentence, `See ${where}.`)
  process.exit(2)
}
