import { readFileSync } from 'node:fs'
import module from 'node:module'
import { fileURLToPath } from 'node:url'

const TYPEBOX = '@sinclair/typebox'
// In the package, modules end with .js.
const entry = new URL(import.meta.url.replace(/resolve-package(\.\w+)$/, 'package-entry$1')).href
// Without which a file is CommonJS.
const MODULE_SYNTAX = /^[ \t]*(?:import|export)\b/m

let isRegistered = false

/**
 * Makes `fastify-usher` the program that runs, wherever a configuration file is: in a clone, or beside a program that
 * was installed elsewhere. TypeBox, with which fields are described, comes with it. Files of a package whose
 * package.json has no `type` are modules if they are written as such, without Node's warning.
 */
export function resolvePackage (): void {
  if (isRegistered) return
  isRegistered = true
  // Imported by name, it would keep a runtime that lacks it from loading the plugin.
  if (typeof module.registerHooks !== 'function') {
    throw new Error('a configuration file needs Node.js, because this runtime has no module.registerHooks')
  }
  module.registerHooks({
    resolve (specifier, context, nextResolve) {
      if (specifier === 'fastify-usher') return nextResolve(entry, context)
      if (specifier !== TYPEBOX && !specifier.startsWith(`${TYPEBOX}/`)) {
        return withFormat(nextResolve(specifier, context))
      }
      try {
        return nextResolve(specifier, context)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
        return nextResolve(specifier, { ...context, parentURL: import.meta.url })
      }
    },
  })
}

// Not in a hook `load`, which fails for CommonJS in Node.js 22.18.
function withFormat (found: module.ResolveFnOutput): module.ResolveFnOutput {
  const { url, format } = found
  const hasFormat = format !== null && format !== undefined
  if (hasFormat || !/^file:.*\.[jt]s$/.test(url) || url.includes('/node_modules/')) return found
  if (!MODULE_SYNTAX.test(readFileSync(fileURLToPath(url), 'utf8'))) return found
  return { ...found, format: url.endsWith('.ts') ? 'module-typescript' : 'module' }
}
