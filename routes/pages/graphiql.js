/* global YogaGraphiQL, createSession */
const { workers, examples } = JSON.parse(document.querySelector('#data').textContent)

const urls = {}
for (const [label, source] of Object.entries(workers)) {
  urls[label] = URL.createObjectURL(new Blob([source], { type: 'text/javascript' }))
}
self.MonacoEnvironment = { globalAPI: false, getWorkerUrl: (_, label) => urls[label] }

let authorization
const session = createSession((token) => { authorization = token && `Bearer ${token}` })

// A header that is typed into the headers pane replaces that of the session.
const headersOf = (typed = {}) => {
  const isTyped = Object.keys(typed).some((name) => name.toLowerCase() === 'authorization')
  return authorization && !isTyped ? { authorization } : {}
}

session.restore().then(() => YogaGraphiQL.renderYogaGraphiQL(document.querySelector('#root'), {
  title: 'Usher GraphiQL',
  subscriptionsProtocol: 'WS',
  // One tab for each operation of the examples.
  defaultTabs: examples.trim().split(/\n(?=# )/).map((query) => ({ query })),
  additionalHeaders: ({ extensions } = {}) => headersOf(extensions?.headers),
  connectionParams: headersOf,
  // Headers that are typed may contain tokens, so they are not stored.
  shouldPersistHeaders: false,
}))
