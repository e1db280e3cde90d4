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

// GraphiQL measures tabs before they are where they stay, and moves a tab that has the focus by the difference: it
// jumped away from the pointer, and the click missed. So tabs stay in place (graphiql.css), and cannot be dragged.
document.querySelector('#root').addEventListener('pointerdown', (event) => {
  if (event.target.closest('.graphiql-tab')) event.stopPropagation()
}, { capture: true })

const runningButton = () => document.querySelector('.graphiql-execute-button[aria-label^="Stop"]')
// The tab that is open, once its operation was executed or edited.
let open
// GraphiQL runs one operation at a time. It stops that of a tab that is left, without a word, and one that runs while
// a tab is added would write its results there. It calls this also for changes of the open tab.
function followTabs ({ tabs, activeTabIndex }) {
  const left = open
  open = tabs[activeTabIndex]
  if (!left || left.id === open.id) return
  const isStopped = runningButton() !== null && tabs.some(({ id }) => id === left.id)
  session.say(isStopped ? `Leaving the tab ${left.title} has stopped its operation. Execute it again to continue.` : '')
  // GraphiQL is still changing its state.
  queueMicrotask(() => runningButton()?.click())
}

session.restore().then(() => YogaGraphiQL.renderYogaGraphiQL(document.querySelector('#root'), {
  title: 'Usher GraphiQL',
  subscriptionsProtocol: 'WS',
  // One tab for each operation of the examples.
  defaultTabs: examples.trim().split(/\n(?=# )/).map((query) => ({ query })),
  onTabChange: followTabs,
  additionalHeaders: ({ extensions } = {}) => headersOf(extensions?.headers),
  connectionParams: headersOf,
  // Headers that are typed may contain tokens, so they are not stored.
  shouldPersistHeaders: false,
}))
