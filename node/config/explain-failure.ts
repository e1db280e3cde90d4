import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { dirname, join, relative, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

interface File {
  readonly path: string
  /** The working directory. */
  readonly cwd: string
}

interface Place { readonly path: string, readonly line?: number | undefined }

/**
 * Returns a sentence, without a stack trace, that says why a configuration file could not be loaded or why something of
 * it has failed: the file, the line and the message. The line is that of the file, or of a module of the same project
 * that it imports.
 */
export function explainFailure (error: unknown, { path, cwd }: File): string {
  const { message, place = { path } } = error instanceof Error
    ? { message: messageOf(error), place: placeOf(error, path) }
    : { message: `it has thrown ${typeof error === 'string' ? error : typeof error}`, place: undefined }
  const at = place.line === undefined ? '' : `:${place.line}`
  // What Node adds below the message, such as a part of the source, is for a terminal.
  const [sentence = ''] = message.split('\n')
  return `${nameOf(place.path, cwd)}${at}: ${sentence.replace(/\.$/, '')}.`
}

/** Returns a path for people: from the working directory, or the whole one if it is outside. */
export function nameOf (path: string, cwd: string): string {
  const name = relative(cwd, path)
  return name.startsWith('..') ? path : name
}

function messageOf (error: Error): string {
  const { message } = error
  const [, specifier] = /^Cannot find (?:package|module) '([^']+)'/.exec(message) ?? []
  if (specifier !== undefined) {
    return specifier.startsWith('/') || specifier.startsWith('file:')
      ? `${specifier} does not exist. An import names the file with its extension, such as ./hooks.ts`
      : `the package ${specifier} cannot be found: install it with "npm install ${specifier}"`
  }
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') {
    return `${message.replace(/\.$/, '')}: Node only removes types (erasableSyntaxOnly)`
  }
  return message || error.name
}

function placeOf (error: Error, path: string): Place | undefined {
  const { stack = '', message } = error
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ERR_MODULE_NOT_FOUND') {
    const [, specifier = '', importer = path] = /^Cannot find (?:package|module) '([^']+)' imported from (.+?)(?:\n|$)/.exec(message) ?? []
    return { path: toPath(importer), line: lineOfImport(toPath(importer), specifier) }
  }
  // Of an error of syntax, the first line is the place: /path/file.ts:3, or a URL.
  const [, file, line] = /^(\/[^\n]*|[A-Z]:\\[^\n]*|file:[^\n]*):(\d+)\n/.exec(stack) ?? []
  if (file !== undefined) return { path: toPath(file), line: Number(line) }
  const place = firstOwn(stack)
  return place ?? (error instanceof SyntaxError ? { path, line: checkSyntax(path) } : undefined)
}

// Returns the first call in the stack that is neither in a package nor in Usher.
function firstOwn (stack: string): Place | undefined {
  for (const [, file = '', line] of stack.matchAll(/[ (](file:\/\/\S+?|[/\\][^\s()]+?|[A-Z]:\\[^\s()]+?):(\d+):\d+\)?$/gm)) {
    const path = toPath(file)
    if (!folders.some((folder) => path.includes(folder))) return { path, line: Number(line) }
  }
  return undefined
}

// Packages, and the modules of Usher. In a clone, the file is beside them.
const program = dirname(dirname(import.meta.dirname))
const folders = [
  `${sep}node_modules${sep}`, ...['db', 'node', 'plugins', 'routes', 'schema'].map((name) => join(program, name, sep)),
]

const toPath = (file: string) => file.startsWith('file:') ? fileURLToPath(file) : file

// The message has the path of a file that is missing, and the source what is relative to it.
function lineOfImport (importer: string, specifier: string): number | undefined {
  const end = specifier.split(/[\\/]/).at(-1)!
  const lines = readFileSync(importer, 'utf8').split('\n')
  const index = lines.findIndex((line) => /\b(?:from|import|require)\b/.test(line) && line.includes(end))
  return index === -1 ? undefined : index + 1
}

// Node says where an error of syntax in JavaScript is only when it prints it.
function checkSyntax (path: string): number | undefined {
  const { stderr } = spawnSync(process.execPath, ['--check', path], { encoding: 'utf8', env: {}, timeout: 10_000 })
  const [, line] = /^.*:(\d+)$/m.exec(stderr) ?? []
  return line === undefined ? undefined : Number(line)
}
