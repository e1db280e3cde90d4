import { readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { InvalidInput } from '../../schema/http/errors.ts'
import { PROGRAM } from '../../schema/runtime/program.ts'
import { printable, printEntries, printFailure, printResult } from '../terminal/print.ts'
import { hasLoadedConfig } from '../config/config-file.ts'
import { isInterrupted } from './command-data.ts'
import { WrongArguments, type Command, type Values } from './command.ts'
import { describeAll, describeCommand, describeGroup, namesIn, type Commands } from './usage.ts'

/** All commands. A command is loaded when it is run, so that the node does not load what its start does not need. */
export const commands: Commands = {
  start: () => import('./start.ts'),
  init: () => import('./init.ts'),
  status: () => import('./status.ts'),
  config: () => import('./config.ts'),
  migrate: () => import('./migrate.ts'),
  'admin create': () => import('./admin-create.ts'),
  'users list': () => import('./users/list.ts'),
  'users show': () => import('./users/show.ts'),
  'users create': () => import('./users/create.ts'),
  'users promote': () => import('./users/change.ts').then(({ promote }) => ({ default: promote })),
  'users demote': () => import('./users/change.ts').then(({ demote }) => ({ default: demote })),
  'users disable': () => import('./users/change.ts').then(({ disable }) => ({ default: disable })),
  'users enable': () => import('./users/change.ts').then(({ enable }) => ({ default: enable })),
  'users reset-password': () => import('./users/reset-password.ts'),
  'users reset-second-factor': () => import('./users/reset-second-factor.ts'),
  'users delete': () => import('./users/delete.ts'),
  'users import': () => import('./users/import.ts'),
  'users export': () => import('./users/export.ts'),
  'sessions list': () => import('./sessions/list.ts'),
  'sessions end': () => import('./sessions/end.ts'),
  'api-keys list': () => import('./api-keys/list.ts'),
  'api-keys create': () => import('./api-keys/create.ts'),
  'api-keys delete': () => import('./api-keys/delete.ts'),
  audit: () => import('./audit-list.ts'),
  'events list': () => import('./events/list.ts'),
  'events retry': () => import('./events/retry.ts'),
  'keys rotate': () => import('./keys-rotate.ts'),
  'uploads list': () => import('./uploads/list.ts'),
  'uploads show': () => import('./uploads/show.ts'),
  'uploads delete': () => import('./uploads/delete.ts'),
  'uploads links': () => import('./uploads/links.ts'),
  'uploads revoke': () => import('./uploads/revoke.ts'),
  'uploads clean': () => import('./uploads-clean.ts'),
  'uploads move': () => import('./uploads-move.ts'),
  backup: () => import('./backup.ts'),
  restore: () => import('./restore.ts'),
}

const isHelp = (word: string) => word === '--help' || word === '-h'

/**
 * Runs the command that the arguments name, or `start` if they name none. A failure is printed as a sentence, and the
 * process exits with 1, or with 2 if the arguments are wrong.
 */
export async function main (args: string[]): Promise<void> {
  if (args[0] === 'help') return main([...args.slice(1), '--help'])
  const words = args.slice(0, args.findIndex((word) => word.startsWith('-')) >>> 0)
  if (words.length === 0 && args.some(isHelp)) return printText(await describeAll(commands))
  if (words.length === 0 && args.includes('--version')) return printText(await readVersion())
  const name = words.length === 0 ? 'start' : nameIn(words)
  if (name === undefined) return explainWords(words, args)
  // What a node writes is a log, also if its arguments are wrong. Help is for people.
  if (name === 'start' && !args.some(isHelp)) printEntries()
  const { default: command } = await commands[name]!()
  const { arguments: names = [] } = command
  const options = {
    ...command.options,
    ...command.json !== undefined && { json: { type: 'boolean' } as const },
    help: { type: 'boolean', short: 'h' } as const,
  }
  let values: Values
  let positionals: string[]
  try {
    const rest = args.slice(words.length === 0 ? 0 : name.split(' ').length);
    ({ values, positionals } = parseArgs({ args: rest, options, allowPositionals: names.length > 0 }) as {
      values: Values, positionals: string[]
    })
  } catch (error) {
    // Only the first sentence is printed. The second one explains how to pass arguments that begin with a hyphen.
    return reject(`${(error as Error).message.split('. ')[0]!.replace(/\.$/, '')}.`, `${PROGRAM} ${name} --help`)
  }
  if (values['help']) return printText(describeCommand(name, command))
  if (positionals.length !== names.length) {
    return reject(`${name} needs ${names.join(' and ')}.`, `${PROGRAM} ${name} --help`)
  }
  await run(command, values, positionals)
  // A configuration file may have opened connections, which would keep the process alive.
  if (name !== 'start' && hasLoadedConfig()) process.stdout.write('', () => process.exit())
}

async function printText (text: string): Promise<void> {
  try {
    await printResult(text)
  } catch (error) {
    printFailure((error as Error).message)
    process.exit(1)
  }
}

async function run (command: Command, values: Values, positionals: readonly string[]): Promise<void> {
  try {
    const output = await command.run(values, positionals)
    if (!output) return
    await printResult(values['json'] ? JSON.stringify(output.json, null, 2) : printableLines(output.text))
    if (output.isFailure) process.exitCode = 1
  } catch (error) {
    // What a signal ends stops in order first.
    if (isInterrupted()) return
    printFailure(...printableLines((error as Error).message).split('\n'))
    process.exit(error instanceof WrongArguments || error instanceof InvalidInput ? 2 : 1)
  }
}

// Arguments, backups and rows of the database may contain sequences that control the terminal.
const printableLines = (text: string): string => text.split('\n').map(printable).join('\n')

// Returns the command with which the words begin. The words after it are its arguments.
function nameIn (words: readonly string[]): string | undefined {
  return [words.slice(0, 2).join(' '), words[0]!].find((name) => Object.hasOwn(commands, name))
}

async function explainWords ([group, ...others]: readonly string[], args: readonly string[]): Promise<void> {
  const names = namesIn(commands, group!)
  if (names.length > 0 && others.length === 0 && args.some(isHelp)) {
    return printText(await describeGroup(commands, group!))
  }
  if (names.length > 0 && others.length === 0) {
    return reject(
      `${group} needs a command: ${names.map((name) => name.slice(group!.length + 1)).join(', ')}.`,
      `${PROGRAM} ${group} --help`
    )
  }
  reject(
    `There is no command ${[group, ...others].join(' ')}.`, names.length > 0 ? `${PROGRAM} ${group} --help` : undefined
  )
}

// In the package, the code is one folder deeper than in a clone.
async function readVersion (): Promise<string> {
  const read = (path: string) => readFile(new URL(path, import.meta.url), 'utf8')
  const { version } = JSON.parse(await read('../../package.json').catch(() => read('../../../package.json')))
  return version
}

function reject (sentence: string, where = `${PROGRAM} --help`): void {
  printFailure(printableLines(sentence), `See ${where}.`)
  process.exit(2)
}
