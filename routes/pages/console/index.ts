import type { FastifyError, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { keepConnection, reportError, translate } from '../../../plugins/http/errors.ts'
import { InvalidCredentials, InvalidToken } from '../../../schema/sign-in/login.ts'
import { SecondFactorMissing, SecondFactorRequired, StepUpRequired } from '../../../schema/sign-in/second-factor.ts'
import { Forbidden, InvalidInput, NotFound, PreconditionFailed } from '../../../schema/http/errors.ts'
import type { Actor } from '../../../schema/options/policy.ts'
import { addFormParser } from '../../http/form-parser.ts'
import { alert } from '../components.ts'
import { Html, html } from '../html.ts'
import { serveConsoleAssets } from './assets.ts'
import { addressOf, type Context, type Form, type Outcome, type Render } from './context.ts'
import { createLayout } from './layout.ts'
import { createLists } from './lists.ts'
import { createOpeningPages } from './opening.ts'
import { createOverview } from './overview.ts'
import { createConsoleSessions } from './session.ts'
import { createUserPage } from './user.ts'
import { createNewUser, createUserList } from './users.ts'

const FORM_BYTES = 256 * 1024
// A host has at most 32 fields of users, and each is sent as it is and as it was.
const FORM_FIELDS = 100

// Below the auth routes, whose requests have the cookie of the session of the browser.
const OPENING = '/api/auth/pages/console'

/** A page or an address to which forms are sent, with who asks. */
interface Admitted { actor: Actor, expiresAt: Date }

/**
 * Adds the console for admins (contract 18). It uses the operations of the API: the same functions, with the
 * permissions of the policy, preconditions and the account log. It acts with a session of its own.
 */
const consoleRoutes: FastifyPluginAsync = async (app) => {
  const {
    usherAccess: { actors, callerOf, confirmReader }, usherOptions: options,
  } = app
  const { publicPath } = options
  const path = `${publicPath}/console`
  const sessions = await createConsoleSessions(app)
  const layout = createLayout(options, { path, assets: serveConsoleAssets(app) })
  const pages = createOpeningPages(options, { path })
  const admitted = new WeakMap<FastifyRequest, Admitted>()
  const hidden = { schema: { hide: true } } as const
  addFormParser(app, FORM_BYTES, FORM_FIELDS)

  app.addHook('onRequest', async (_, reply) => { reply.headers(layout.headers) })
  app.setErrorHandler((thrown: FastifyError, request, reply) => {
    const error = fail(thrown, request, reply)
    // The session has ended meanwhile.
    if (error.statusCode === 401) return send(reply, endedPage())
    return send(reply, layout.message(titleOf(error), sentenceOf(error), admitted.get(request)))
  })

  addOpening()
  const lists = createLists(app)
  const [user, newUser] = [createUserPage(app), createNewUser(app)]
  const userList = createUserList(app)
  addPage('', createOverview(app))
  addPage('/users', userList)
  addPage('/users/new', newUser.render)
  addPage('/users/:id', user.render)
  for (const [address, render] of Object.entries(lists.pages)) addPage(address, render)

  addForm('/users', newUser.render, async (context, typed) => newUser.create(context, typed))
  for (const [address, submit] of Object.entries(user.forms)) {
    addForm(`/users/:id${address}`, user.render, async (context, typed) => {
      const done = await submit(context, typed)
      if (done instanceof Html) return done
      return done === 'deleted' ? `${path}/users?done=deleted` : `${path}/users/${context.params['id']}?done=${done}`
    }, address === '' ? 'profile' : address === '/keys' ? 'key' : undefined)
  }
  for (const [address, submit] of Object.entries(lists.forms)) {
    const shown = Object.keys(lists.pages).find((page) => address.startsWith(`${page}/`))!
    addForm(address, lists.pages[shown]!, async (context, typed) => `${path}/${await submit(context, typed)}`)
  }
  app.post('/console/logout', { ...hidden, onRequest: [admit, sessions.requireOwnOrigin] }, async (request, reply) => {
    await sessions.end(request, reply)
    return reply.redirect(`${path}/login?done=out`, 303)
  })
  // Everything else, whatever the method.
  app.all('/console/*', { ...hidden, onRequest: admit }, async () => { throw new NotFound() })

  function addPage (address: string, render: Render): void {
    app.get(`/console${address}`, { ...hidden, onRequest: admit }, async (request, reply) => {
      const context = contextOf(request)
      try {
        const view = await render(context)
        // A read may have waited.
        await confirmReader(context.actor, request.socket)
        return send(reply, layout.page(view, admitted.get(request)!, context.query['done']))
      } catch (thrown) {
        if (!(thrown instanceof InvalidInput)) throw thrown
        // A parameter of the address is wrong, such as a search for one letter.
        const error = fail(thrown, request, reply)
        const view = await render({ ...context, query: {} })
        return send(reply, layout.page(view, admitted.get(request)!, undefined, alert(sentenceOf(error), 'error')))
      }
    })
  }

  function addForm (
    address: string, render: Render, submit: (context: Context, typed: Form) => Promise<string | Html>, form?: string
  ): void {
    app.post(`/console${address}`, { ...hidden, onRequest: [admit, sessions.requireOwnOrigin] }, async (request, reply) => {
      const context = contextOf(request)
      const typed = formOf(request)
      const outcome: Outcome = { typed, ...form !== undefined && { form } }
      try {
        const done = await submit(context, typed)
        if (typeof done === 'string') return reply.redirect(done, 303)
        const view = await render(context, { ...outcome, result: done })
        return send(reply, layout.page(view, admitted.get(request)!))
      } catch (thrown) {
        const error = translate(thrown as FastifyError)
        if (error.statusCode === 401 || error.statusCode! >= 500 || error instanceof NotFound) throw error
        fail(error, request, reply)
        const failure = alert(sentenceOf(error), 'error')
        // The page itself may be gone by now.
        const view = await render(context, { ...outcome, error }).catch(() => undefined)
        if (!view) return send(reply, layout.message(titleOf(error), sentenceOf(error), admitted.get(request)))
        const isShown = form === 'profile' && error instanceof PreconditionFailed
        return send(reply, layout.page(view, admitted.get(request)!, undefined, isShown ? undefined : failure))
      }
    })
  }

  // The console opens with the session of the browser. The auth routes alone get the cookie of that, so one of them
  // looks at it, and another one opens the console when the browser sends the form of a page of the console.
  function addOpening (): void {
    const onRequest = [refuseOthers, sessions.requireOwnOrigin]

    app.get(OPENING, { ...hidden, onRequest: refuseOthers }, async (request, reply) => {
      const next = nextOf(request)
      return await sessions.findParent(request)
        ? reply.redirect(pages.openingOf(next), 303)
        : leadToLogin(reply, next)
    })
    app.get('/console/login', { ...hidden, onRequest: refuseOthers }, async (request, reply) => {
      const { done } = textsOf(request.query)
      // Whoever has logged out does not want to be back at once.
      return send(reply, layout.visitor('Open the console', pages.ask(nextOf(request), done === undefined), done))
    })
    app.post('/console/login', { ...hidden, onRequest }, async (request, reply) => {
      const next = nextOf(request)
      // After a link from another site, with which the browser does not send the cookie of the console.
      if (await sessions.find(request)) return reply.redirect(`${path}${next}`, 303)
      return reply.redirect(addressOf(`${publicPath}${OPENING}`, { next }), 307)
    })
    app.post(OPENING, { ...hidden, onRequest }, async (request, reply) => {
      const next = nextOf(request)
      const parent = await sessions.findParent(request)
      if (!parent) return leadToLogin(reply, next)
      try {
        await sessions.open(request, reply, parent)
        return reply.redirect(`${path}${next}`, 303)
      } catch (thrown) {
        if (thrown instanceof InvalidToken || thrown instanceof InvalidCredentials) return leadToLogin(reply, next)
        if (thrown instanceof StepUpRequired || thrown instanceof SecondFactorRequired) {
          return leadToLogin(reply, next, true)
        }
        const content = thrown instanceof Forbidden
          ? pages.refuse(parent.user, next)
          : thrown instanceof SecondFactorMissing ? pages.askForFactor(next) : undefined
        if (!content) throw thrown
        fail(thrown as FastifyError, request, reply)
        return send(reply, layout.visitor(titles[403]!, content))
      }
    })
  }

  function leadToLogin (reply: FastifyReply, next: string, isAgain = false): FastifyReply {
    const login = pages.loginOf(next, isAgain)
    if (login !== undefined) return reply.redirect(login, 303)
    return send(reply.code(401), layout.visitor('Log in', pages.askForLogin(next, isAgain)))
  }

  // An `onRequest` hook that lets admins in, leads those without a session of the console to one, and tells everybody
  // else that there is nothing.
  async function admit (request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    await refuseOthers(request)
    const found = await sessions.find(request)
    if (!found) {
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        return send(reply.code(401), endedPage())
      }
      const next = request.url.slice(request.url.indexOf('/console') + '/console'.length)
      return reply.redirect(addressOf(`${publicPath}${OPENING}`, { next: next === '/' ? '' : next }), 303)
    }
    actors.set(request, found.actor)
    if (!sessions.mayOpen(found.actor)) throw new NotFound()
    admitted.set(request, found)
  }

  async function refuseOthers (request: FastifyRequest): Promise<void> {
    if (await sessions.isForeign(request)) throw new NotFound()
  }

  function contextOf (request: FastifyRequest): Context {
    const { actor } = admitted.get(request)!
    return {
      request, caller: callerOf(request), actor, path, query: textsOf(request.query), params: textsOf(request.params),
    }
  }

  // Sets the status and the headers of the response to an error. Returns the error of the catalogue.
  function fail (thrown: FastifyError | InvalidInput, request: FastifyRequest, reply: FastifyReply) {
    const error = translate(thrown as FastifyError)
    keepConnection(error, reply)
    reportError(error, request, reply)
    // A page asks for no bearer token.
    reply.removeHeader('www-authenticate')
    return error
  }

  function sentenceOf (error: FastifyError | InvalidInput): Html {
    if (error instanceof StepUpRequired) {
      const login = pages.loginOf('', true)
      return html`Confirm that it is you: ${
        login === undefined ? 'log in again' : html`<a href="${login}">log in again</a>`}, and repeat this.`
    }
    if (error instanceof PreconditionFailed) {
      return html`Somebody else has changed this since you opened the page. Nothing was done: look again, and repeat it.`
    }
    const sentences = 'errors' in error ? error.errors : [error.message]
    return html`${sentences.map((text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`).join(' ')}`
  }

  // What was typed is still in the form to which the browser goes back.
  const endedPage = (): Html => layout.visitor('Log in', html`<h1 tabindex="-1">Your session has ended</h1>
${alert('Nothing was done.', 'error')}
<p><a href="${path}" target="_blank">Open the console in another tab</a>, and then go back to this page: what you typed is still there.</p>`)

  // Where the visitor wants to go, relative to the console.
  function nextOf ({ query }: FastifyRequest): string {
    const { next = '' } = textsOf(query)
    return /^\/[\w/?=&.%+-]{0,1000}$/.test(next) && !/\/\/|\.\./.test(next) ? next : ''
  }
}

const titles: Readonly<Record<number, string>> = {
  403: 'Not permitted',
  404: 'Not found',
  412: 'Changed meanwhile',
  429: 'Too many requests',
  503: 'Not available at the moment',
}

// The heading of a page that says what went wrong.
const titleOf = ({ statusCode = 500 }: Pick<FastifyError, 'statusCode'>): string =>
  titles[statusCode] ?? (statusCode >= 500 ? 'Something went wrong' : 'Not possible')

const send = (reply: FastifyReply, page: Html): FastifyReply => reply.type('text/html; charset=utf-8').send(`${page}`)

// Returns the parameters that were given once, and as text.
function textsOf (given: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries((given ?? {}) as object)
    .filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}

const formOf = ({ body }: FastifyRequest): Form => textsOf(body)

export default consoleRoutes
