import { execFile } from 'node:child_process'
import { access, cp } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import manifest from '../../package.json' with { type: 'json' }

const root = join(import.meta.dirname, '../..')

/** The content of the package, as npm reports it. */
export interface Packed { path: string, files: { path: string }[], size: number }

const environment = {
  ...process.env, PATH: `${join(process.execPath, '..')}:${process.env['PATH']}`, NO_COLOR: '1', CI: 'true',
}

/**
 * Packs Usher into a folder, as `npm publish` does.
 * @param source another package of the repository, such as `./dist-client` after Usher was packed
 */
export async function pack (folder: string, source = '.'): Promise<Packed> {
  const stdout = await run(root, 'npm', ['pack', source, '--json', '--pack-destination', folder])
  const [{ filename, files, size }] =
    JSON.parse(stdout.slice(stdout.search(/^\[/m))) as [{ filename: string, files: Packed['files'], size: number }]
  return { path: join(folder, filename), files, size }
}

/** Runs a program in a folder and returns what it prints. Throws an error with its output if it fails. */
export async function run (
  cwd: string, file: string, args: string[], env: Record<string, string> = {}
): Promise<string> {
  try {
    // tap adds its options to the environment of every process that a test starts, and they would load tap into every
    // program.
    const running = promisify(execFile)(
      'env', ['-u', 'NODE_OPTIONS', file, ...args], { cwd, env: { ...environment, ...env }, maxBuffer: 2 ** 26 }
    )
    // Nobody answers questions.
    running.child.stdin!.end()
    return (await running).stdout
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string, stderr?: string }
    throw new Error(`${file} ${args.join(' ')}\n${stdout}${stderr}`, { cause: error })
  }
}

/** Installs packages into a folder with npm, without running their scripts. */
export async function install (cwd: string, ...packages: string[]): Promise<string> {
  // Without one, npm would install them in the nearest folder above that has one.
  await access(join(cwd, 'package.json'))
  return run(cwd, 'npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts', ...packages])
}

/** Copies the hosts of test/consumer into a folder, and installs the packed Usher there with what every host has. */
export async function installInHost (folder: string, packed: string): Promise<void> {
  await cp(join(root, 'test/consumer'), folder, { recursive: true })
  const { devDependencies: { fastify, '@types/node': types }, dependencies: { postgres } } = manifest
  const packages = [packed, `fastify@${fastify}`, `postgres@${postgres}`, `@types/node@${types}`]
  await run(folder, 'npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', '--omit=dev', ...packages])
}

/** Runs a module of a folder in Node.js as a host would, and returns what it prints. */
export async function runHost (folder: string, module: string, options: object): Promise<string> {
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], NO_COLOR: '1' }
  const args = [module, JSON.stringify(options)]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { cwd: folder, env })
  if (stderr !== '') throw new Error(`${module}: ${stderr}`)
  return stdout
}

/** What the client of test/consumer/session.js gets from its host. */
export const sessionResponses = {
  mine: 'admin',
  users: 200,
  rejected: 400,
  created: 201,
  uploaded: 200,
  file: 'Hello',
  query: { data: { users: { nodes: [{ name: 'Ada' }, { name: 'Admin' }] } } },
  socket: 'Over a socket',
  graphiql: [200, true],
  reference: [200, 200, 200],
  login: 200,
}
