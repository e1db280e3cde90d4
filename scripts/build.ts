// Makes dist/, which is what the package ships: JavaScript, the declarations of its entry, and the SDL.
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')

// What is left of a file that is no longer there would be shipped too.
rmSync(dist, { recursive: true, force: true })
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
execFileSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], { stdio: 'inherit' })
copyFileSync(join(root, 'schema/schema.graphql'), join(dist, 'schema/schema.graphql'))
// A copy that one of them imports: in there it would be the package's boundary.
rmSync(join(dist, 'package.json'))
chmodSync(join(dist, 'server.js'), 0o755)
keepDeclarations(join(dist, 'app.d.ts'))

// The other declarations merge types into Fastify's that are nobody's business but ours. Their imports become
// those of the files beside them: not every setting of a host lets `.ts` be imported.
function keepDeclarations (entry: string): void {
  const kept = new Set([entry])
  for (const file of kept) {
    const text = readFileSync(file, 'utf8').replaceAll(/(from|import\()( ?['"]\.[^'"]*)\.ts(?=['"])/g, '$1$2.js')
    writeFileSync(file, text)
    for (const [, path] of text.matchAll(/['"](\.[^'"]*)\.js['"]/g)) kept.add(resolve(file, '..', `${path}.d.ts`))
  }
  for (const file of globSync('**/*.d.ts', { cwd: dist })) if (!kept.has(join(dist, file))) rmSync(join(dist, file))
}
