import { PROGRAM } from '../../schema/runtime/program.ts'
import type { Command } from './command.ts'

/** The commands by their names, each with a function that loads it. */
export type Commands = Readonly<Record<string, () => Promise<{ default: Command }>>>

/** Returns the names of the commands of a group, such as `users`. */
export function namesIn (commands: Commands, group: string): string[] {
  return Object.keys(commands).filter((name) => name.startsWith(`${group} `))
}

/** Returns the help for all commands. */
export async function describeAll (commands: Commands): Promise<string> {
  return `Usage: ${PROGRAM} [command] [options]\n\n${await listCommands(commands, Object.keys(commands))}\n\n` +
    'Without a command, it runs the node. Settings are read from the environment, from .env and from usher.config.ts, see\n' +
    'docs/settings.md and docs/config.md.\n' +
    `For the options of a command, run: ${PROGRAM} <command> --help\n` +
    `For the version, run: ${PROGRAM} --version`
}

/** Returns the help for a group of commands, such as `users`. */
export async function describeGroup (commands: Commands, group: string): Promise<string> {
  return `Usage: ${PROGRAM} ${group} <command> [options]\n\n${await listCommands(commands, namesIn(commands, group))}\n\n` +
    `For the options of a command, run: ${PROGRAM} ${group} <command> --help`
}

/** Returns the help for a command. */
export function describeCommand (
  name: string, { summary, details, arguments: names = [], json, options }: Command
): string {
  const hasOptions = json !== undefined || Object.keys(options).length > 0
  const usage = [PROGRAM, name, ...names, ...hasOptions ? ['[options]'] : []].join(' ')
  const ofJson = json === undefined ? [] : [`With --json, it prints one JSON document:\n  ${json}`]
  return [`Usage: ${usage}`, summary, ...details === '' ? [] : [details], ...ofJson].join('\n\n')
}

async function listCommands (commands: Commands, names: readonly string[]): Promise<string> {
  const width = Math.max(...names.map((name) => name.length)) + 2
  const lines = await Promise.all(
    names.map(async (name) => `  ${name.padEnd(width)}${(await commands[name]!()).default.summary}`)
  )
  return lines.join('\n')
}
