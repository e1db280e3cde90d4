// Runs before `node/server.ts` in a clone, because versions of Node.js that are too old cannot even read TypeScript.
// The package has JavaScript, where `schema/runtime/require-node.ts` does the same.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 18)) {
  const isInstalled = require('node:fs').existsSync(require('node:path').join(__dirname, '../node_modules/node'))
  const advice = isInstalled ? '' : ' Run "npm ci" first: it brings Node.js 24.'
  const msg = `Usher needs Node.js 22.18 or later; this is ${process.versions.node}.${advice}`
  const isNode = process.argv[2] === undefined || process.argv[2] === 'start'
  const entry = { level: 60, time: Date.now(), pid: process.pid, hostname: require('node:os').hostname(), msg }
  process.stderr.write(`${isNode && !process.stderr.isTTY ? JSON.stringify(entry) : msg}\n`)
  process.exit(1)
}
