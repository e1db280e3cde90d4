import { existsSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { UsherConfig } from '../../schema/options/config.ts'
import { inTime } from '../../schema/runtime/in-time.ts'
import { checkConfig } from './check.ts'
import { explainFailure, nameOf } from './explain-failure.ts'
import { recordLoadedConfig } from './loaded.ts'
import { resolvePackage } from './resolve-package.ts'
import type { Shell } from '../terminal/shell.ts'

/** The names of configuration files. */
export const CONFIG_NAMES = ['usher.config.ts', 'usher.config.js', 'usher.config.mjs'] as const
const EXTENSION = /\.(ts|mts|js|mjs)$/
// A file may ask another service for a secret. One that takes longer waits for something that does not come.
const LOAD_MS = 60_000

/** A configuration file that was loaded (contract 14.6). */
export interface ConfigFile {
  /** Its path from the working directory, for people. */
  readonly name: string
  readonly path: string
  /** The working directory. */
  readonly cwd: string
  /** What it exports by default. */
  readonly options: UsherConfig
}

/** Thrown for a mistake in a configuration file. The message has a sentence for each, one per line. */
export class ConfigError extends Error {}

/**
 * Loads the configuration file: the one that the setting `CONFIG` names, or `usher.config.ts`, `.js` or `.mjs` in the
 * working directory. Returns undefined if there is none. Throws a `ConfigError` that says file and option of each
 * mistake.
 * @param settingNames the names of all settings, for hints
 */
export async function loadConfigFile (
  { env, cwd }: Pick<Shell, 'env' | 'cwd'>, settingNames: readonly string[]
): Promise<ConfigFile | undefined> {
  const path = findFile(env['CONFIG'], cwd)
  if (path === undefined) return undefined
  const name = nameOf(path, cwd)
  const options = await load(path, cwd)
  const problems = checkConfig(options, { env, settingNames })
  if (problems.length > 0) throw new ConfigError(problems.map((text) => `${name}: ${sentence(text)}`).join('\n'))
  return { name, path, cwd, options }
}

/**
 * Returns the message of an error of the plugin with the name of the file, or undefined if it names no option that the
 * file has.
 */
export function explainOption ({ name, options }: ConfigFile, message: string): string | undefined {
  const [, text = '', option = ''] = /^usher: (([\w$]+)[\s\S]*)$/.exec(message) ?? []
  return Object.hasOwn(options, option) ? `${name}: ${sentence(text)}` : undefined
}

const sentence = (text: string) => /[.?]$/.test(text) ? text : `${text}.`

function findFile (given: string | undefined, cwd: string): string | undefined {
  if (given) {
    const path = resolve(cwd, given)
    if (!EXTENSION.test(path)) throw new ConfigError('CONFIG must be a file whose name ends with .ts, .js or .mjs.')
    if (!existsSync(path)) throw new ConfigError(`CONFIG: ${path} does not exist.`)
    return path
  }
  const found = CONFIG_NAMES.filter((name) => existsSync(resolve(cwd, name)))
  if (found.length > 1) {
    throw new ConfigError(`There are ${found.join(' and ')}: remove all but one, or name one with CONFIG.`)
  }
  return found[0] === undefined ? undefined : resolve(cwd, found[0])
}

async function load (path: string, cwd: string): Promise<UsherConfig> {
  const name = nameOf(path, cwd)
  if (EXTENSION.exec(path)![1]!.endsWith('ts') && path.split(/[\\/]/).includes('node_modules')) {
    throw new ConfigError(`${name}: Node runs no TypeScript inside of node_modules: move the file, or write it in JavaScript.`)
  }
  resolvePackage()
  recordLoadedConfig()
  const late = () => new ConfigError(
    `${name}: loading it takes longer than ${LOAD_MS / 1000} seconds: it, or a module that it imports, awaits what does not come.`
  )
  let exported: { readonly default?: unknown }
  try {
    // With a timer, because Node ends if nothing else is left to wait for.
    exported = await inTime(import(pathToFileURL(path).href), LOAD_MS, late, { ref: true })
  } catch (error) {
    if (error instanceof ConfigError) throw error
    throw new ConfigError(explainFailure(error, { path, cwd }), { cause: error })
  }
  const { default: options } = exported
  if (typeof options !== 'object' || options === null || Array.isArray(options) || options instanceof Promise) {
    throw new ConfigError(`${name}: it must export an object: export default defineConfig({ … }).`)
  }
  return options as UsherConfig
}

/** Returns the name of the file without its folder, which is the source of its values. */
export const sourceOf = ({ name }: ConfigFile): string => basename(name)
