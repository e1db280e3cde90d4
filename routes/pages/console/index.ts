import type { FastifyError, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { actorWithoutSession } from '../../../plugins/access/actors.ts'
import { keepConnection, reportError, translate } from '../../../plugins/http/errors.ts'
import { InvalidCredentials, InvalidToken } from '../../../schema/sign-in/login.ts'
import { SecondFactorMissing, SecondFactorRequired, StepUpRequired } from '../../../schema/sign-in/second-factor.ts'
import { Forbidden, InvalidInput, NotFound, PreconditionFailed } from '../../../schema/http/errors.ts'
import type { Actor } from '../../../schema/options/policy.ts'
import { addFormParser } from '../../http/form-parser.ts'
import { alert } from '../components.ts'
import { html, type Html } from '../html.ts'
import { serveConsoleAssets } from './assets.ts'
import { submitBulk, type Bulk } from './bulk.ts'
import { addressOf, type Context, type Form, type Outcome, type Render, type Submit } from './context.ts'
import { explainError, titleOfFailure } from './errors.ts'
import { actionOfSection, createLayout, type Visitor } from './layout.ts'
import { createLists } from './lists.ts'
import { createLogPages } from './log.ts'
import { createOpeningPages, showDenied } from './opening.ts'
import { createOrganizationPages } from './organizations.ts'
import { createOverview } from './overview.ts'
import { createPostPages } from './posts.ts'
import { createConsoleSessions } from './session.ts'
import { createSettings } from './settings.ts'
import { createUploadPages } from './uploads.ts'
import { createUserPages } from './user.ts'
import { createNewUser, createUserList, usersBulk } from './users.ts'
import { createWords, type Words } from './words.ts'

const FORM_BYTES = 256 * 1024
// A host has at most 32 fields of users, and each is sent as it is and as it was. A list has 50 rows.
const FORM_FIELDS = 100

// Below the auth routes, whose requests have the cookie of the session of the browser.
const OPENING = '/api/auth/pages/console'

/** A page or an address to which forms are sent, with who asks. */
interface Admitted extends Visitor { actor: Actor }

/**
 * Adds the console for admins (contract 18). It uses the operations of the API: the same functions, with the
 * permissions of the policy, preconditions and the account log. It acts with a session of its own.
 */
const consoleRoutes: FastifyPluginAsync = async (app) => {
  const {
    usherAccess: { actors, callerOf, confirmReader, policy }, usherOptions: options,
  } = app
  const { publicPath } = options
  const path = `${publicPath}/console`
  const sessions = await createConsoleSessions(app)
  const layout = createLayout(options, { path, assets: serveConsoleAssets(app) })
  const pages = createOpeningPages(options, { path })
  const admitted = new WeakMap<FastifyRequest, Admitted>()
  const findWords = createWords(options)
  const languages = new WeakMap<FastifyRequest, Words>()
  const hidden = { schema: { hide: true } } as const
  addFormParser(app, FORM_BYTES, FORM_FIELDS)

  app.addHook('onRequest', async (request, reply) => {
    const words = await findWords(request)
    languages.set(request, words)
    reply.headers({ ...layout.headers, 'content-language': words.language })
  })
  app.setErrorHandler((thrown: FastifyError, request, reply) => {
    const error = fail(thrown, request, reply)
    // The session has ended meanwhile.
    if (error.statusCode === 401) return send(reply, endedPage(request))
    return send(reply, showFailure(request, error))
  })

  addOpening()
  addPages()
  app.post('/console/logout', { ...hidden, onRequest: [admit, sessions.requireOwnOrigin] }, async (request, reply) => {
    await sessions.end(request, reply)
    return reply.redirect(`${path}/login?done=out`, 303)
  })
  // Everything else, whatever the method.
  app.all('/console/*', { ...hidden, onRequest: admit }, async () => { throw new NotFound() })

  function addPages (): void {
    const log = createLogPages(app)
    const posts = options.without.includes('posts') ? undefined : createPostPages(app)
    const uploads = options.without.includes('uploads') ? undefined : createUploadPages(app)
    const [newUser, userList, lists] = [createNewUser(app), createUserList(app), createLists(app)]
    const organizations = options.organizations && createOrganizationPages(app)
    const user = createUserPages(app, { log, posts, uploads, organizations })

    addOverview(createOverview(app, log))
    addPage('/users', userList)
    addPage('/users/new', newUser.render)
    addForm('/users', newUser.render, newUser.create)
    addBulk(usersBulk(app), userList)
    for (const [address, render] of Object.entries(user.pages)) addPage(`/users/:id${address}`, render)
    for (const { address, question, render, submit } of user.forms) {
      if (question) addPage(`/users/:id${address}`, question)
      addForm(`/users/:id${address}`, render, submit, address === '' ? 'profile' : address === '/keys' ? 'key' : undefined)
    }
    if (organizations) {
      addPage('/organizations', organizations.list)
      for (const [address, render] of Object.entries(organizations.pages)) addPage(`/organizations/:id${address}`, render)
      for (const { address, question, render, submit, form } of organizations.forms) {
        if (question) addPage(`/organizations/:id${address}`, question)
        addForm(`/organizations/:id${address}`, render, submit, form)
      }
    }
    if (posts) {
      addPage('/posts', posts.list)
      addPage('/posts/:item', posts.one)
      addPage('/posts/:item/delete', posts.question)
      addForm('/posts/:item/delete', posts.question, posts.remove)
      addBulk(posts.bulk, posts.list)
    }
    if (uploads) {
      addPage('/uploads', uploads.list)
      addPage('/uploads/:item/delete', uploads.question)
      addForm('/uploads/:item/delete', uploads.question, uploads.remove)
      addBulk(uploads.bulk, uploads.list)
    }
    addPage('/log', log.list)
    addPage('/settings', createSettings(app))
    for (const [address, render] of Object.entries({ ...lists.pages, ...lists.questions })) addPage(address, render)
    for (const [address, submit] of Object.entries(lists.forms)) {
      addForm(address, lists.pages[Object.keys(lists.pages).find((page) => address.startsWith(`${page}/`))!]!, submit)
    }
  }

  // The address at which the console opens. Whoever may not see the overview sees the first page of the others.
  function addOverview (render: Render): void {
    addPage('', render, (request) => {
      const first = layout.firstPageOf(admitted.get(request)!)
      return first === undefined || first === '' ? undefined : `${path}${first}`
    })
  }

  function addBulk (bulk: Bulk, list: Render): void {
    addForm(`${bulk.address}/bulk`, list, submitBulk(bulk, app.usherAudit))
  }

  function addPage (
    address: string, render: Render, insteadOf: (request: FastifyRequest) => string | undefined = () => undefined
  ): void {
    app.get(`/console${address}`, { ...hidden, onRequest: admit }, async (request, reply) => {
      const other = insteadOf(request)
      if (other !== undefined) return reply.redirect(other, 303)
      const context = contextOf(request)
      try {
        const view = await render(context)
        // A read may have waited.
        await confirmReader(context.actor, request.socket)
        return send(reply, layout.page(context.words, view, admitted.get(request)!, { done: context.query['done'] }))
      } catch (thrown) {
        if (!(thrown instanceof InvalidInput)) throw thrown
        // A parameter of the address is wrong, such as a search for one letter.
        const error = fail(thrown, request, reply)
        const view = await render({ ...context, query: {} })
        const failure = alert(sentenceOf(request, error), 'error')
        return send(reply, layout.page(context.words, view, admitted.get(request)!, { failure }))
      }
    })
  }

  function addForm (address: string, render: Render, submit: Submit, form?: string): void {
    app.post(`/console${address}`, { ...hidden, onRequest: [admit, sessions.requireOwnOrigin] }, async (request, reply) => {
      const context = contextOf(request)
      const { words } = context
      const typed = formOf(request)
      const outcome: Outcome = { typed, ...form !== undefined && { form } }
      try {
        const done = await submit(context, typed)
        if (typeof done === 'string') return reply.redirect(done, 303)
        if ('file' in done) {
          return reply.type('application/json; charset=utf-8')
            .header('content-disposition', `attachment; filename="${done.file}"`).send(`${JSON.stringify(done.json, null, 2)}\n`)
        }
        const view = 'view' in done ? done.view : await render(context, { ...outcome, result: done.result })
        return send(reply, layout.page(words, view, admitted.get(request)!))
      } catch (thrown) {
        const error = translate(thrown as FastifyError)
        if (error.statusCode === 401 || error.statusCode! >= 500 || error instanceof NotFound) throw error
        fail(error, request, reply)
        // The page itself may be gone by now.
        const view = await render(context, { ...outcome, error }).catch(() => undefined)
        if (!view) return send(reply, showFailure(request, error))
        const isShown = form === 'profile' && error instanceof PreconditionFailed
        const failure = isShown ? undefined : alert(sentenceOf(request, error), 'error')
        return send(reply, layout.page(words, view, admitted.get(request)!, { failure }))
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
        : leadToLogin(request, reply, next)
    })
    app.get('/console/login', { ...hidden, onRequest: refuseOthers }, async (request, reply) => {
      const { done } = textsOf(request.query)
      // Whoever has logged out does not want to be back at once.
      const words = wordsOf(request)
      const page = pages.ask(words, nextOf(request), done === undefined)
      return send(reply, layout.visitor(words, words.t.openTitle, page, done))
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
      if (!parent) return leadToLogin(request, reply, next)
      try {
        await sessions.open(request, reply, parent)
        return reply.redirect(`${path}${next}`, 303)
      } catch (thrown) {
        if (thrown instanceof InvalidToken || thrown instanceof InvalidCredentials) {
          return leadToLogin(request, reply, next)
        }
        if (thrown instanceof StepUpRequired || thrown instanceof SecondFactorRequired) {
          return leadToLogin(request, reply, next, true)
        }
        const words = wordsOf(request)
        const content = thrown instanceof Forbidden
          ? pages.refuse(words, parent.user, { next, roles: policy.rolesWith(actorWithoutSession(parent.user), 'console:open') })
          : thrown instanceof SecondFactorMissing ? pages.askForFactor(words, next) : undefined
        if (!content) throw thrown
        fail(thrown as FastifyError, request, reply)
        return send(reply, layout.visitor(words, words.t.notPermitted, content))
      }
    })
  }

  function leadToLogin (request: FastifyRequest, reply: FastifyReply, next: string, isAgain = false): FastifyReply {
    const login = pages.loginOf(next, isAgain)
    if (login !== undefined) return reply.redirect(login, 303)
    const words = wordsOf(request)
    return send(reply.code(401), layout.visitor(words, words.t.logIn, pages.askForLogin(words, next, isAgain)))
  }

  // An `onRequest` hook that lets admins in, leads those without a session of the console to one, and tells everybody
  // else that there is nothing.
  async function admit (request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    await refuseOthers(request)
    const found = await sessions.find(request)
    if (!found) {
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        return send(reply.code(401), endedPage(request))
      }
      const next = request.url.slice(request.url.indexOf('/console') + '/console'.length)
      return reply.redirect(addressOf(`${publicPath}${OPENING}`, { next: next === '/' ? '' : next }), 303)
    }
    actors.set(request, found.actor)
    if (!sessions.mayOpen(found.actor)) throw new NotFound()
    const caller = callerOf(request)
    admitted.set(request, { ...found, mayOpen: (section) => caller.allows(actionOfSection[section]) })
  }

  async function refuseOthers (request: FastifyRequest): Promise<void> {
    if (await sessions.isForeign(request)) throw new NotFound()
  }

  function contextOf (request: FastifyRequest): Context {
    const { actor } = admitted.get(request)!
    return {
      request,
      caller: callerOf(request),
      actor,
      words: wordsOf(request),
      path,
      query: textsOf(request.query),
      params: textsOf(request.params),
    }
  }

  function wordsOf (request: FastifyRequest): Words {
    return languages.get(request)!
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

  function sentenceOf (request: FastifyRequest, error: FastifyError | InvalidInput): Html {
    const words = wordsOf(request)
    const { actor } = admitted.get(request) ?? {}
    const [denied] = error instanceof Forbidden && actor ? callerOf(request).denied.slice(-1) : []
    if (denied !== undefined) return showDenied(words, actor!.role, denied, policy.rolesWith(actor!, denied))
    if (!(error instanceof StepUpRequired)) return html`${explainError(words, error)}`
    const login = pages.loginOf('', true)
    return html`${words.t.stepUpText}${login !== undefined && html` <a href="${login}">${words.t.stepUpLogin}</a>`}`
  }

  function showFailure (request: FastifyRequest, error: FastifyError | InvalidInput): Html {
    const words = wordsOf(request)
    return layout.message(words, titleOfFailure(words, error), sentenceOf(request, error), admitted.get(request))
  }

  // What was typed is still in the form to which the browser goes back.
  function endedPage (request: FastifyRequest): Html {
    const words = wordsOf(request)
    const { t } = words
    return layout.visitor(words, t.logIn, html`<h1 tabindex="-1">${t.sessionEndedTitle}</h1>
${alert(t.nothingDone, 'error')}
<p><a href="${path}" target="_blank">${t.openElsewhere}</a></p><p>${t.typedStays}</p>`)
  }

  // Where the visitor wants to go, relative to the console.
  function nextOf ({ query }: FastifyRequest): string {
    const { next = '' } = textsOf(query)
    return /^\/[\w/?=&.%+-]{0,1000}$/.test(next) && !/\/\/|\.\./.test(next) ? next : ''
  }
}

const send = (reply: FastifyReply, page: Html): FastifyReply => reply.type('text/html; charset=utf-8').send(`${page}`)

// Returns the parameters that were given once, and as text.
function textsOf (given: unknown): Record<string, string> {
  return Object.fromEntries(Object.entries((given ?? {}) as object)
    .filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}

const formOf = ({ body }: FastifyRequest): Form => textsOf(body)

export default consoleRoutes
