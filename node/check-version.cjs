// Runs before `node/server.ts` in a clone, because versions of Node.js that are too old cannot even read TypeScript. The package has
// JavaScript, where `node/require-node.ts` does the same.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 18)) {
  process.stderr.write(`Usher needs Node.js 22.18 or later; this is ${process.versions.node}.\n`)
  process.exit(1)
}
