/** Throws an `Error` with a one-sentence message if this version of Node.js is too old to run Usher. */
export function requireNode (version: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  if (major < 22 || (major === 22 && minor < 18)) {
    throw new Error(`Usher needs Node.js 22.18 or later; this is ${version}.`)
  }
}
