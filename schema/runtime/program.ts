/**
 * How to run the command line. Where the package is installed, `npx` finds its program. In a clone, `npx` would look
 * for the package in the registry. The name `usher` alone belongs to another package.
 */
export const PROGRAM = import.meta.url.endsWith('.ts') ? 'npm start --' : 'npx fastify-usher'
