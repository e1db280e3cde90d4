import { readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { run } from '../helpers/package.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

interface Published { name: string, version: string, files: { path: string }[] }

t.setTimeout(900_000)
const root = join(import.meta.dirname, '../..')
const recipe = await readFile(join(root, 'docs/operations/releasing.md'), 'utf8')
// The commands of a section.
const commands = (title: string) => new RegExp(`^## ${title}\n[^]*?^\`\`\`sh\n([^]*?)^\`\`\``, 'm').exec(recipe)![1]!

t.test('14.6 docs/operations/releasing.md: its steps make a version, and packages that npm would publish', async (t) => {
  const folder = join(temporaryFolder(), 'clone')
  await run(root, 'git', ['clone', '--quiet', '--no-hardlinks', root, folder])
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  const author = { NAME: 'A maintainer', EMAIL: 'maintainer@example.com' }
  const env = Object.fromEntries(['AUTHOR', 'COMMITTER'].flatMap((who) =>
    Object.entries(author).map(([name, value]) => [`GIT_${who}_${name}`, value])))
  const read = (file: string) => readFile(join(folder, file), 'utf8')

  const version = '0.1.7'
  const bump = commands('2. Version and changelog')
  t.match(bump, /^VERSION=\d+\.\d+\.\d+$/m)
  // The changelog as it is before the release of that version.
  const first = /^## (\d\S*) \(unreleased\)$/m.exec(await read('CHANGELOG.md'))
  t.ok(first, 'CHANGELOG.md has a section of what is not released')
  await run(folder, 'sed', ['-i', `s/^## ${first![1]} (unreleased)/## ${version} (unreleased)/`, 'CHANGELOG.md'])
  await run(folder, 'sh', ['-ec', bump.replace(/^VERSION=.*$/m, `VERSION=${version}`)], env)

  t.match(await read('CHANGELOG.md'), new RegExp(`^## ${version.replaceAll('.', '\\.')} \\(\\d{4}-\\d\\d-\\d\\d\\)$`, 'm'))
  for (const file of ['package.json', 'package-lock.json']) {
    t.equal((JSON.parse(await read(file)) as { version: string }).version, version, file)
  }
  t.match(await read('README.md'), `fastify-usher-${version}.tgz`)
  const rest = await run(folder, 'git', ['grep', '-hoE', 'fastify-usher-[0-9.]+\\.tgz', '--', 'README.md', 'docs'])
  t.strictSame([...new Set(rest.trim().split('\n'))], [`fastify-usher-${version}.tgz`])
  t.equal(await run(folder, 'git', ['describe', '--tags']), `v${version}\n`)
  t.equal(await run(folder, 'git', ['status', '--short', '--', ':!node_modules']), '')

  const steps = commands('3. The packages').trim().split('\n')
  t.strictSame(steps, ['npm publish --dry-run', 'npm publish ./dist-client --dry-run'])
  for (const step of steps) {
    const output = await run(folder, 'sh', ['-c', `${step} --json`])
    // What npm prints after the output of the build; versions of npm differ in whether it is by name.
    const printed = JSON.parse(output.slice(output.search(/^\{/m))) as Published | Record<string, Published>
    const { name, version: published, files } = ('files' in printed ? printed : Object.values(printed)[0]) as Published
    t.equal(published, version, name)
    t.ok(files.some(({ path }) => path === 'LICENSE'), `${name} has its license`)
  }
})
