// Loaded with `--import`, this makes tests run the modules of the packed package, whose folder USHER_PACKAGE names, in
// place of the source. Each module of the source has one there, so tests that import inner modules share them with the
// app.
import { existsSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'

const source = new URL('../../', import.meta.url).href
const tests = new URL('..', import.meta.url).href
const built = pathToFileURL(`${process.env['USHER_PACKAGE']}/dist/`).href

registerHooks({
  resolve (specifier, context, nextResolve) {
    const resolved = nextResolve(specifier, context)
    const { url } = resolved
    if (!url.startsWith(source) || url.startsWith(tests) || url.startsWith(built) || !url.endsWith('.ts')) {
      return resolved
    }
    const replacement = `${built}${url.slice(source.length, -'ts'.length)}js`
    if (!existsSync(fileURLToPath(replacement))) throw new Error(`The package lacks ${replacement}`)
    return { ...resolved, url: replacement, format: 'module' }
  },
})
