import { readFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { InvalidInput } from '../../schema/http/errors.ts'
import { PROGRAM } from '../../schema/runtime/program.ts'
import { printable, printResult } from '../terminal/print.ts'
import { Shell, type Invocation } from '../terminal/shell.ts'
import { WrongArguments, type Command, type Values } from './command.ts'
import { describeAll, describeCommand, describeGroup, namesIn, type Commands, type Listed } from './usage.ts'

type Load = () => Promise<{ default: Command }>
const command = (summary: string, load: Load): Listed => ({ summary, load })

/**
 * All commands. A command is loaded when it is run, so that neither the node nor the help for all loads what it does
 * not need.
 */
export const commands: Commands = {
  start: command('Run the node.', () => import('./start.ts')),
  init: command('Write a commented usher.config.ts into this folder.', () => import('./init.ts')),
  status: command('Report what is healthy, and change nothing.', () => import('./status.ts')),
  config: command('Show every setting and option, and where its value comes from.', () => import('./config.ts')),
  migrate: command('Bring the database up to date.', () => import('./migrate.ts')),
  'admin create': command('Create an admin.', () => import('./admin-create.ts')),
  'users list': command('List users, newest first.', () => import('./users/list.ts')),
  'users show': command('Show a user.', () => import('./users/show.ts')),
  'users create': command('Create a user.', () => import('./users/create.ts')),
  'users promote': command(
    'Give a user the role admin.',
    () => import('./users/change.ts').then(({ promote }) => ({ default: promote }))
  ),
  'users demote': command(
    'Give a user the role user.',
    () => import('./users/change.ts').then(({ demote }) => ({ default: demote }))
  ),
  'users set-role': command('Give users another role.', () => import('./users/set-role.ts')),
  'users disable': command(
    'Disable a user.',
    () => import('./users/change.ts').then(({ disable }) => ({ default: disable }))
  ),
  'users enable': command(
    'Enable a user who was disabled.',
    () => import('./users/change.ts').then(({ enable }) => ({ default: enable }))
  ),
  'users reset-password': command(
    'Set a new password for a user, and end all sessions.',
    () => import('./users/reset-password.ts')
  ),
  'users reset-second-factor': command(
    'Remove the authenticator app of a user who has lost it, and end all sessions.',
    () => import('./users/reset-second-factor.ts')
  ),
  'users delete': command('Delete a user with all posts and uploads.', () => import('./users/delete.ts')),
  'users import': command(
    'Import users with the hashes of their passwords from another system.',
    () => import('./users/import.ts')
  ),
  'users export': command(
    'Write all users with the hashes of their passwords to a file.',
    () => import('./users/export.ts')
  ),
  'sessions list': command(
    'List sessions that have neither ended nor expired, newest first.',
    () => import('./sessions/list.ts')
  ),
  'sessions end': command('End sessions on every node at once.', () => import('./sessions/end.ts')),
  'api-keys list': command('List API keys that have not expired, newest first.', () => import('./api-keys/list.ts')),
  'api-keys create': command('Create an API key of a user, and print it once.', () => import('./api-keys/create.ts')),
  'api-keys delete': command(
    'Delete an API key, which every node rejects from then on.',
    () => import('./api-keys/delete.ts')
  ),
  'organizations list': command('List organisations, newest first.', () => import('./organizations/list.ts')),
  'organizations show': command('Show an organisation and its members.', () => import('./organizations/show.ts')),
  'organizations create': command('Create an organisation.', () => import('./organizations/create.ts')),
  'organizations transfer': command(
    'Make a user an owner of an organisation.',
    () => import('./organizations/transfer.ts')
  ),
  'organizations delete': command(
    'Delete an organisation with its memberships.',
    () => import('./organizations/delete.ts')
  ),
  'organizations import': command(
    'Import organisations with their members from another system.',
    () => import('./organizations/import.ts')
  ),
  audit: command('List the entries of the account log, newest first.', () => import('./audit-list.ts')),
  'events list': command(
    'List events that could not be delivered, and what is waiting.',
    () => import('./events/list.ts')
  ),
  'events retry': command('Deliver events again that have failed.', () => import('./events/retry.ts')),
  'keys rotate': command('Create a new key that signs access tokens.', () => import('./keys-rotate.ts')),
  'uploads list': command('List uploads, newest first, private ones included.', () => import('./uploads/list.ts')),
  'uploads show': command('Show the record of an upload.', () => import('./uploads/show.ts')),
  'uploads delete': command('Delete an upload, its file and its links.', () => import('./uploads/delete.ts')),
  'uploads links': command(
    'List the links of an upload that have not expired, newest first.',
    () => import('./uploads/links.ts')
  ),
  'uploads revoke': command(
    'Revoke a link to an upload, which stops the downloads that it serves on every node.',
    () => import('./uploads/revoke.ts')
  ),
  'uploads clean': command(
    'Remove stored files that have no record in the database.',
    () => import('./uploads-clean.ts')
  ),
  'uploads move': command(
    'Move the files of uploads from one storage to another.',
    () => import('./uploads-move.ts')
  ),
  backup: command('Write the database and the uploads to a file.', () => import('./backup.ts')),
  restore: command('Restore the database and the uploads from a backup.', () => import('./restore.ts')),
}

const isHelp = (word: string) => word === '--help' || word === '-h'

// The exit codes, apart from those of signals.
const [SUCCESS, FAILURE, WRONG_ARGUMENTS] = [0, 1, 2]

/**
 * Runs the command that the arguments name, or `start` if they name none. Prints a failure as a sentence. Returns the
 * exit code: 0, or 1 after a failure, 2 if the arguments are wrong, 128 and the number of the signal that has ended the
 * command; or undefined if the process is a node now, which ends it by itself. What the command has opened is closed
 * then, except for what a configuration file has opened.
 */
export async function main (invocation: Invocation): Promise<number | undefined> {
  const shell = new Shell(invocation)
  const code = await Promise.race([execute(shell, invocation.args), shell.interruption])
  return shell.isInterrupted ? shell.interruption : code
}

async function execute (shell: Shell, args: readonly string[]): Promise<number | undefined> {
  if (args[0] === 'help') return execute(shell, [...args.slice(1), '--help'])
  const words = args.slice(0, args.findIndex((word) => word.startsWith('-')) >>> 0)
  if (words.length === 0 && args.some(isHelp)) return printText(shell, describeAll(commands))
  if (words.length === 0 && args.includes('--version')) return printText(shell, await readVersion())
  const name = words.length === 0 ? 'start' : nameIn(words)
  if (name === undefined) return explainWords(shell, words, args)
  // What a node writes is a log, also if its arguments are wrong. Help is for people.
  if (name === 'start' && !args.some(isHelp)) {
    shell.messages.becomeEntries()
    if (shell.process) shell.messages.takeOver(shell.process)
  }
  const { summary, load } = commands[name]!
  const { default: command } = await load()
  const { arguments: names = [], insteadOfArguments = [] } = command
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
    return reject(shell, `${(error as Error).message.split('. ')[0]!.replace(/\.$/, '')}.`, `${PROGRAM} ${name} --help`)
  }
  if (values['help']) return printText(shell, describeCommand(name, summary, command))
  const isReplaced = insteadOfArguments.some((option) => values[option] !== undefined)
  if (!(isReplaced && positionals.length === 0) && positionals.length !== names.length) {
    return reject(shell, `${name} needs ${names.join(' and ')}.`, `${PROGRAM} ${name} --help`)
  }
  const code = await run(shell, command, values, positionals)
  return name === 'start' && code === SUCCESS ? undefined : code
}

async function printText ({ stdout, messages }: Shell, text: string): Promise<number> {
  try {
    await printResult(stdout, text)
    return SUCCESS
  } catch (error) {
    messages.printFailure((error as Error).message)
    return FAILURE
  }
}

async function run (
  shell: Shell, command: Command, values: Values, positionals: readonly string[]
): Promise<number> {
  try {
    const output = await command.run(values, positionals, shell)
    if (!output) return SUCCESS
    const text = values['json'] ? JSON.stringify(output.json, null, 2) : printableLines(output.text)
    await printResult(shell.stdout, text)
    return output.isFailure ? FAILURE : SUCCESS
  } catch (error) {
    // What a signal ends stops in order first.
    if (shell.isInterrupted) return shell.interruption
    shell.messages.printFailure(...printableLines((error as Error).message).split('\n'))
    return error instanceof WrongArguments || error instanceof InvalidInput ? WRONG_ARGUMENTS : FAILURE
  }
}

// Arguments, backups and rows of the database may contain sequences that control the terminal.
const printableLines = (text: string): string => text.split('\n').map(printable).join('\n')

// Returns the command with which the words begin. The words after it are its arguments.
function nameIn (words: readonly string[]): string | undefined {
  return [words.slice(0, 2).join(' '), words[0]!].find((name) => Object.hasOwn(commands, name))
}

async function explainWords (
  shell: Shell, [group, ...others]: readonly string[], args: readonly string[]
): Promise<number> {
  const names = namesIn(commands, group!)
  if (names.length > 0 && others.length === 0 && args.some(isHelp)) {
    return printText(shell, describeGroup(commands, group!))
  }
  if (names.length > 0 && others.length === 0) {
    return reject(
      shell,
      `${group} needs a command: ${names.map((name) => name.slice(group!.length + 1)).join(', ')}.`,
      `${PROGRAM} ${group} --help`
    )
  }
  return reject(
    shell,
    `There is no command ${[group, ...others].join(' ')}.`,
    names.length > 0 ? `${PROGRAM} ${group} --help` : undefined
  )
}

// In the package, the code is one folder deeper than in a clone.
async function readVersion (): Promise<string> {
  const read = (path: string) => readFile(new URL(path, import.meta.url), 'utf8')
  const { version } = JSON.parse(await read('../../package.json').catch(() => read('../../../package.json')))
  return version
}

function reject ({ messages }: Shell, sentence: string, where = `${PROGRAM} --help`): number {
  messages.printFailure(printableLines(sentence), `See ${where}.`)
  return WRONG_ARGUMENTS
}
