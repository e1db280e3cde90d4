import { parseArgs } from 'node:util'
import { print } from '../print.ts'
import type { Command } from './command.ts'

// The name that works wherever the package is installed. `npx usher` would run another package.
const PROGRAM = 'npx fastify-usher'

// A command is loaded when it is run, so that the node does not load what its start does not need.
const commands: Record<string, () => Promise<{ default: Command }>> = {
  start: () => import('./start.ts'),
  migrate: () => import('./migrate.ts'),
  'admin create': () => import('./admin-create.ts'),
  'keys rotate': () => import('./keys-rotate.ts'),
  'sessions end': () => import('./sessions-end.ts'),
  'uploads clean': () => import('./uploads-clean.ts'),
  backup: () => import('./backup.ts'),
  restore: () => import('./restore.ts'),
}

const helpOption = { help: { type: 'boolean', short: 'h' } } as const

/**
 * Runs the command that the arguments name, or `start` if they name none. A failure is printed as a sentence, and the process
 * exits with 1, or with 2 if the arguments are wrong.
 */
export async function main (args: string[]): Promise<void> {
  const words = args.slice(0, args.findIndex((word) => word.startsWith('-')) >>> 0)
  if (words.length === 0 && args.some((word) => word === '--help' || word === '-h')) return console.log(await help())
  const name = words.length === 0 ? 'start' : nameIn(words)
  if (name === undefined) return reject(`There is no command ${words.join(' ')}.`)
  const { default: command } = await commands[name]!()
  const { arguments: names = [] } = command
  const options = { ...command.options, ...helpOption }
  let values: Parameters<Command['run']>[0]
  let positionals: string[]
  try {
    const rest = args.slice(words.length === 0 ? 0 : name.split(' ').length);
    ({ values, positionals } = parseArgs({ args: rest, options, allowPositionals: names.length > 0 }))
  } catch (error) {
    // Only the first sentence is printed. The second one explains how to pass arguments that begin with a hyphen.
    return reject(`${(error as Error).message.split('. ')[0]!.replace(/\.$/, '')}.`, `${PROGRAM} ${name} --help`)
  }
  if (values['help']) {
    const usage = [PROGRAM, name, ...names, ...Object.keys(command.options).length > 0 ? ['[options]'] : []].join(' ')
    return console.log(`Usage: ${usage}\n\n${command.summary}\n\n${command.details}`)
  }
  if (positionals.length !== names.length) return reject(`${name} needs ${names.join(' and ')}.`, `${PROGRAM} ${name} --help`)
  await command.run(values, positionals).catch((error: Error) => {
    print(error.message)
    process.exit(1)
  })
}

// Returns the command with which the words begin. The words after it are its arguments.
function nameIn (words: readonly string[]): string | undefined {
  return [words.slice(0, 2).join(' '), words[0]!].find((name) => Object.hasOwn(commands, name))
}

async function help (): Promise<string> {
  const lines = await Promise.all(Object.entries(commands).map(async ([name, load]) => {
    const { default: { summary } } = await load()
    return `  ${name.padEnd(14)}${summary}`
  }))
  return `Usage: ${PROGRAM} [command] [options]\n\n${lines.join('\n')}\n\n` +
    'Without a command, it runs the node. Settings are read from the environment and from .env, see docs/settings.md.\n' +
    `For the options of a command, run: ${PROGRAM} <command> --help`
}

function reject (sentence: string, where = `${PROGRAM} --help`): void {
  print(sentence, `See ${where}.`)
  process.exit(2)
}
