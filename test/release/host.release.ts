import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { pack, run } from '../helpers/package.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

// Installing takes a while with an empty cache.
t.setTimeout(900_000)
// Outside of the repository, so that the packages there are not found.
const folder = temporaryFolder()
const guide = await readFile(join(import.meta.dirname, '../../docs/host.md'), 'utf8')
const { path: packed } = await pack(folder)

// A file is a block of code that follows its name in a paragraph.
const files = [...guide.matchAll(/^`([\w.-]+)`:\n\n```\w+\n([^]*?)^```/gm)]
  .map(([, name, text]) => ({ name: name!, text: text! }))
const commands = [...guide.matchAll(/^```sh\n([^]*?)^```/gm)].map(([, text]) => text!.trim().split('\n'))

// The checks that npm makes on the side take longer than the installation.
const settings = { npm_config_audit: 'false', npm_config_fund: 'false', npm_config_prefer_offline: 'true' }

const managers = {
  npm: (command: string) => command.replace(/^npm install/, 'npm install --ignore-scripts'),
  pnpm: (command: string) =>
    command.replace(/^npm install --save-dev/, 'npx --yes pnpm@latest add --save-dev --ignore-scripts')
      .replace(/^npm install/, 'npx --yes pnpm@latest add'),
}

t.test('docs/host.md has a project with tests', async (t) => {
  t.ok(files.length > 8)
  t.same(commands.map((lines) => lines.length), [4, 2])
})

for (const [manager, translate] of Object.entries(managers)) {
  t.test(`12 the product of docs/host.md compiles and passes its tests, installed with ${manager}`, async (t) => {
    const app = join(folder, manager)
    await mkdir(app)
    const [create, check] = commands as [string[], string[]]
    for (const command of create) {
      await run(app, 'sh', ['-c', translate(command).replace(' fastify-usher ', ` ${packed} `)], settings)
    }
    for (const { name, text } of files) await writeFile(join(app, name), text)
    for (const command of check) {
      t.ok(
        await run(app, 'sh', ['-c', command]).then(() => true, (error: Error) => { t.comment(error.message) }), command
      )
    }
  })
}
