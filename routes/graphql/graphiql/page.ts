import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { fillTemplate, readFileOfPage, readSignIn, sourceOf } from '../../pages/pages.ts'

/** A page that is sent as it is. */
export interface CompressedPage { readonly body: Buffer, readonly policy: string }

/**
 * Creates the page of GraphiQL, compressed. The build does this for the package, so that hosts need not install the
 * nine megabytes of the library, and replaces this module by one that reads the page (`scripts/build.ts`).
 */
export async function createPage (): Promise<CompressedPage> {
  const { css, js, editorWorkerService, graphqlWorker, jsonWorker } = await import(
    '@graphql-yoga/render-graphiql/graphiql'
  )
  const names = [
    'graphiql.html', 'graphiql.css', 'graphiql.js', 'examples.graphql', 'bar.css', 'sign-in.js', 'favicon.svg',
  ]
  const [html, style, script, examples, barStyle, signInScript, icon] =
    await Promise.all(names.map(readFileOfPage)) as
      [string, string, string, string, string, string, string]
  const data = { workers: { editorWorkerService, graphql: graphqlWorker, json: jsonWorker }, examples }
  const scripts = { library: js, signInScript, script }
  const body = fillTemplate(html, {
    ...scripts,
    // A `<` could end the element in which the data are.
    data: JSON.stringify(data).replaceAll('<', '\\u003c'),
    style: css + barStyle + style,
    signIn: await readSignIn('./api'),
    icon: `data:image/svg+xml,${encodeURIComponent(icon)}`,
  })
  return { body: await promisify(gzip)(body, { level: 9 }), policy: createPolicy(Object.values(scripts)) }
}

// Script, styles, fonts and workers are inline. The page sends requests to its own origin only, over HTTP and
// WebSockets.
function createPolicy (scripts: readonly string[]): string {
  return [
    "default-src 'none'", `script-src ${scripts.map(sourceOf).join(' ')}`, "style-src 'unsafe-inline'", 'img-src data:',
    'font-src data:', "connect-src 'self'", 'worker-src blob:', "base-uri 'none'", "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}
