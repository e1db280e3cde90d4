// Every process of the test suite loads this file. Most of the time of a short test is spent on compiling the same
// thousand modules, so they are cached. With coverage there is no cache, because V8 only counts what it compiles in the
// process itself.
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

if (process.env._TAPJS_PROCESSINFO_COVERAGE_ === '0') {
  // Nodes that a test starts inherit the variable.
  process.env.NODE_COMPILE_CACHE = fileURLToPath(new URL('../.tap/compile-cache', import.meta.url))
  enableCompileCache(process.env.NODE_COMPILE_CACHE)
}
