import { PROGRAM } from '../../schema/runtime/program.ts'
import type { Command } from './command.ts'

/** A command of the list of commands. */
export interface Listed {
  /** A sentence about what the command does. */
  readonly summary: string
  load (): Promise<{ default: Command }>
}

/** The commands by their names. */
export type Commands = Readonly<Record<string, Listed>>

/** Returns the names of the commands of a group, such as `users`. */
export function namesIn (commands: Commands, group: string): string[] {
  return Object.keys(commands).filter((name) => name.startsWith(`${group} `))
}

/** Returns the help for all commands. */
export function describeAll (commands: Commands): string {
  return `Usage: ${PROGRAM} [command] [options]\n\n${listCommands(commands, Object.keys(commands))}\n\n` +
    'Without a command, it runs the node. Settings are read from the environment, from .env and from usher.config.ts, see\n' +
    'docs/settings.md and docs/config.md.\n' +
    `For the options of a command, run: ${PROGRAM} <command> --help\n` +
    `For the version, run: ${PROGRAM} --version`
}

/** Returns the help for a group of commands, such as `users`. */
export function describeGroup (commands: Commands, group: string): string {
  return `Usage: ${PROGRAM} ${group} <command> [options]\n\n${listCommands(commands, namesIn(commands, group))}\n\n` +
    `For the options of a command, run: ${PROGRAM} ${group} <command> --help`
}

/** Returns the help for a command. */
export function describeCommand (
  name: string, summary: string, { details, arguments: names = [], json, options }: Command
): string {
  const hasOptions = json !== undefined || Object.keys(options).length > 0
  const usage = [PROGRAM, name, ...names, ...hasOptions ? ['[options]'] : []].join(' ')
  const ofJson = json === undefined ? [] : [`With --json, it prints one JSON document:\n  ${json}`]
  return [`Usage: ${usage}`, summary, ...details === '' ? [] : [details], ...ofJson].join('\n\n')
}

function listCommands (commands: Commands, names: readonly string[]): string {
  const width = Math.max(...names.map((name) => name.length)) + 2
  return names.map((name) => `  ${name.padEnd(width)}${commands[name]!.summary}`).join('\n')
}
