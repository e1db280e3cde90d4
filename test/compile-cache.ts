// Runs in every process of the suite: most of a short test is the compilation of the same thousand modules. Coverage counts only
// what V8 compiles in the process itself.
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

if (process.env._TAPJS_PROCESSINFO_COVERAGE_ === '0') {
  // The nodes that a test starts inherit it.
  process.env.NODE_COMPILE_CACHE = fileURLToPath(new URL('../.tap/compile-cache', import.meta.url))
  enableCompileCache(process.env.NODE_COMPILE_CACHE)
}
