import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { PasskeysUnavailable } from '../../../schema/sign-in/passkeys.ts'
import { createChallengeCookie, createReturnCookie } from '../../access/cookies.ts'
import { failureTexts } from '../../../schema/options/page-texts.ts'
import { addVary } from '../../../plugins/http/vary.ts'
import { addFormParser } from '../../http/form-parser.ts'
import { createReturnTo } from '../../http/return-to.ts'
import { FONT_POLICY } from '../font.ts'
import { serveAssets } from './assets.ts'
import { addForm, createFormOperations, createOriginCheck, FORM_BYTES } from './forms.ts'
import { describeRoles } from './organization-roles.ts'
import { keyActionsOf } from './key-actions.ts'
import { listPages, type Page } from './page-list.ts'
import type { PageValues } from './page-values.ts'
import { markOf } from './provider-marks.ts'
import { createRenderer, explain, explainAtFields } from './render.ts'
import { createLanguages } from './texts.ts'

/**
 * Adds the pages for login, forgotten passwords, sign-up and accounts (contract 15.2). With scripts they use the API.
 * The forms for login, a forgotten password and sign-up also work without.
 */
const pages: FastifyPluginAsync = async (app) => {
  const { usherOptions: options, usherSignIn: { passkeys, providers } } = app
  if (!options.pages.enabled) return
  const languages = await createLanguages(options)
  const { texts } = languages
  const textsOf = (request: FastifyRequest) => texts.get(languages.of(request))!
  const presets = new Map(options.providers.map(({ id, preset }) => [id, preset]))
  const { render } = createRenderer(options, {
    assets: serveAssets(app, texts),
    texts,
    providers: providers.list().map(({ id, name }) => ({ id, name, mark: markOf(id, presets.get(id)) })),
  })
  const destination = await createReturnCookie(app)
  const challenges = await createChallengeCookie(app)
  const readReturnTo = createReturnTo(options)
  const checkOrigin = createOriginCheck(app)
  const keyActions = keyActionsOf(options.policy)
  const ofOrganizations: PageValues = options.organizations
    ? { organizationRoles: describeRoles(options.organizations), organizationFounders: options.organizations.create }
    : {}
  addFormParser(app, FORM_BYTES)

  for (const page of listPages(options, await createFormOperations(app))) {
    app.get(page.path, { schema: { hide: true } }, (request, reply) => {
      if (page.sendsMail) destination.set(reply, returnToOf(request))
      return reply.headers(headersOf(page, request, reply)).type('text/html; charset=utf-8')
        .send(render(page, languages.of(request), valuesOf(page, request)))
    })

    if (page.mailLink || page.takesToken) addEncodedLinks(app, page.path)

    const { form } = page
    if (!form) continue
    addForm(app, {
      path: page.path,
      operation: form.operation,
      checkOrigin,
      nextOf: (request) => form.returns
        ? returnToOf(request) ?? form.next
        : `${form.next}${form.keepsReturn ? returnQueryOf(request, '&') : ''}`,
      ...form.onSuccess && {
        renderSuccess: (request, result) => render(
          page, languages.of(request), { ...valuesOf(page, request), ...typedIn(request), ...form.onSuccess!(result) }
        ),
      },
      headersOf: (request, reply) => headersOf(page, request, reply),
      renderFailure (request, error) {
        const language = languages.of(request)
        const text = explain(error, textsOf(request), language)
        const body = (request.body ?? {}) as Record<string, unknown>
        const shown = form.explain?.({ error, text, body }) ??
          explainAtFields(error, textsOf(request), language, options.userFields)
        return render(page, language, { ...valuesOf(page, request), ...typedIn(request), ...shown })
      },
    })
  }

  const returnToOf = ({ query }: FastifyRequest): string | undefined =>
    readReturnTo((query as { returnTo?: unknown }).returnTo)

  function returnQueryOf (request: FastifyRequest, start = '?'): string {
    const returnTo = returnToOf(request)
    return returnTo === undefined ? '' : `${start}${new URLSearchParams({ returnTo })}`
  }

  function valuesOf (page: Page, request: FastifyRequest): PageValues {
    const { form, notices = {}, next = '', values } = page
    // A mail leads to the page, which therefore knows where the user wanted to go only by the cookie.
    const returnTo = returnToOf(request) ??
      (page.mailLink || page.takesToken ? readReturnTo(destination.read(request)) : undefined)
    const query = returnTo === undefined ? '' : `?${new URLSearchParams({ returnTo })}`
    const notice = Object.keys(notices).find((name) => Object.hasOwn(request.query as object, name))
    return {
      returnTo: returnTo ?? form?.next ?? next,
      loginUrl: `login${query}`,
      secondFactorUrl: `login/second-factor${query}`,
      returnQuery: query,
      ...form?.waitsForChallenge && challengeOf(request),
      ...form?.explainsErrors && errorOf(request),
      canUsePasskeys: hasPasskeys(request),
      hasProviders: providers.ids.length > 0,
      canVerify: options.mailer !== undefined,
      keyActions,
      hasFiles: !options.without.includes('uploads'),
      hasConsole: options.console,
      ...ofOrganizations,
      hasPosts: !options.without.includes('posts'),
      forgotUrl: `forgot-password${query}`,
      ...options.signUp && { signUpUrl: `sign-up${query}`, signUpPage: `sign-up${query}` },
      ...options.loginMail && { loginMailUrl: `login/mail${query}`, mailCodeUrl: `login/mail/code${query}` },
      noticeClass: notice === 'ended' || notice === 'confirm' ? 'alert warning' : 'status',
      ...notice !== undefined && { notice: textsOf(request)[notices[notice]!] },
      ...values,
    }
  }

  // A login that has begun at a provider waits for the second factor.
  function challengeOf (request: FastifyRequest): PageValues {
    const { challenge, methods = [] } = challenges.read(request) ?? {}
    return challenge === undefined ? {} : { challenge, methods: methods.join(' ') }
  }

  // A login at a provider has failed. The parameter may be anything. If the browser has opened the address of the
  // provider twice, the login may wait for the second factor.
  function errorOf (request: FastifyRequest): PageValues {
    const { error } = request.query as { error?: unknown }
    if (typeof error !== 'string' || error === '') return {}
    const waiting = error === 'INVALID_STATE' ? challengeOf(request) : {}
    if (waiting.challenge) return waiting
    const texts = textsOf(request)
    return { alert: Object.hasOwn(failureTexts, error) ? texts[failureTexts[error]!] : texts.providerFailed }
  }

  // Browsers have passkeys for the domain of the public URL only.
  function hasPasskeys (request: FastifyRequest): boolean {
    try {
      passkeys.relyingParty.of(request)
      return true
    } catch (error) {
      if (error instanceof PasskeysUnavailable) return false
      throw error
    }
  }

  function headersOf (
    { form, isPersonal }: Page, request: FastifyRequest, reply: FastifyReply
  ): Record<string, string> {
    if (languages.isNegotiated) addVary(reply, 'Accept-Language')
    const target = form?.returns ? returnToOf(request) : undefined
    return {
      'content-security-policy': createPolicy(
        target !== undefined && URL.canParse(target) ? new URL(target).origin : undefined
      ),
      // With `no-referrer`, browsers would not say where a form comes from. No page with a form has a token in its
      // address.
      'referrer-policy': form ? 'same-origin' : 'no-referrer',
      'content-language': languages.of(request),
      'cache-control': isPersonal || (form?.explainsErrors && errorOf(request).challenge) ? 'no-store' : 'no-cache',
      'x-content-type-options': 'nosniff',
    }
  }
}

/**
 * Adds the addresses of a page to which mails link in which `#` is encoded, once or twice, as some mail gateways and
 * programs do: they lead to the page. The address has the token, so no line of the log shows it, and no page that
 * follows learns it.
 */
function addEncodedLinks (app: FastifyInstance, path: string): void {
  // Relative, because a proxy may have removed a part of the path.
  const page = path.slice(path.lastIndexOf('/') + 1)
  const options = { schema: { hide: true }, logLevel: 'silent' } as const
  app.get(`${path}:link(${ENCODED_HASH.source}.*)`, options, (request: FastifyRequest, reply) => {
    const { link } = request.params as { link: string }
    const token = new URLSearchParams(link.replace(ENCODED_HASH, '')).get('token') ?? ''
    const fragment = /^[\w-]+$/.test(token) ? `#token=${token}` : ''
    reply.headers({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
    return reply.redirect(`${page}${fragment}`)
  })
}

// The router has decoded the path once.
const ENCODED_HASH = /^(?:#|%23)/

// Everything is a file of the own origin, and scripts cannot turn text into markup. Browsers check the whole chain of
// redirects after a form, so a login that leads to another origin names it.
function createPolicy (target: string | undefined): string {
  return [
    "default-src 'none'", "script-src 'self'", "style-src 'self'", FONT_POLICY, "img-src 'self'", "connect-src 'self'",
    "base-uri 'none'", `form-action 'self'${target === undefined ? '' : ` ${target}`}`, "frame-ancestors 'none'",
    "require-trusted-types-for 'script'", "trusted-types 'none'",
  ].join('; ')
}

function typedIn ({ body }: FastifyRequest): PageValues {
  const typed = (body ?? {}) as Record<string, unknown>
  const { name, email } = typed
  return { typed, typedName: typeof name === 'string' ? name : '', typedEmail: typeof email === 'string' ? email : '' }
}

export default pages
