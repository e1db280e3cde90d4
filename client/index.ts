import createClient, { type Client, type FetchResponse, type MaybeOptionalInit } from 'openapi-fetch'
import type { paths } from './api.ts'
import { ResponseCache, type CacheOptions } from './cache.ts'
import { ORGANIZATION_CHANGED, USER_CHANGED, UsherError } from './error.ts'
import { addKey, mayRepeat, repeat, type RetryOptions } from './retry.ts'
import { Session, type SessionState, type User } from './session.ts'
import type { Organization } from './tabs.ts'

export { UsherError, unwrap } from './error.ts'
export { createPasskey, usePasskey } from './passkeys.ts'
export type { components, paths } from './api.ts'
export type {
  ChangedFieldValues, ChangedOrganizationFieldValues, FieldValues, OrganizationFieldValues, Register, Role,
} from './register.ts'
export type { CacheOptions, Organization, RetryOptions, SessionState, User }

export interface UsherClientOptions {
  /**
   * Where Usher is mounted: `https://example.com/accounts`. In a page, a path is enough. Default: the page's origin.
   */
  baseUrl?: string
  /** Replaces the global `fetch`. */
  fetch?: (request: Request) => Promise<Response>
  /**
   * An API key, with which a program acts in place of a session. Never give one to a page: whoever opens the page has
   * it.
   */
  apiKey?: string
  /** The organisation for which calls are sent, until `setOrganization` names another one. */
  organizationId?: string
  retry?: RetryOptions
  cache?: CacheOptions
}

// Of the types of a response, clients get this one. Without it, a list could have the shape of each of its versions.
type Json = 'application/json'

type List = paths['/api/users']['get']
// The users of a list have every member, unless the call names members by `fields`.
type WholeList = Omit<List, 'responses'> & {
  responses: Omit<List['responses'], 200> & { 200: { headers: object, content: { [Type in Json]: User[] } } }
}
type WholePaths = Omit<paths, '/api/users'> & { '/api/users': Omit<paths['/api/users'], 'get'> & { get: WholeList } }
type Calls = Client<WholePaths, Json>

type ListInit = NonNullable<MaybeOptionalInit<paths['/api/users'], 'get'>>
type Parts = { params: { query: { fields: string } } }
type ListParts = (path: '/api/users', init: ListInit & Parts) => Promise<FetchResponse<List, object, Json>>

// The second version of the list, which a call asks for by `Accept`.
type Version2 = 'application/vnd.api.v2+json'
type AsVersion2 = { headers: { Accept: Version2 } | { accept: Version2 } }
type Page = List['responses'][200]['content'][Version2]
type WholePage = Omit<List, 'responses'> & {
  responses: Omit<List['responses'], 200> & {
    200: { headers: object, content: { [Type in Version2]: Omit<Page, 'data'> & { data: User[] } } }
  }
}
type ListPage = (path: '/api/users', init: ListInit & AsVersion2) => Promise<FetchResponse<WholePage, object, Json | Version2>>
type PartPage = Omit<WholePage, 'responses'> & {
  responses: Omit<WholePage['responses'], 200> & { 200: { headers: object, content: { [Type in Version2]: Page } } }
}
type ListPageParts = (
  path: '/api/users', init: ListInit & AsVersion2 & Parts
) => Promise<FetchResponse<PartPage, object, Json | Version2>>

/** A client of Usher. */
export interface UsherClient {
  /**
   * Typed calls by path, as of openapi-fetch. They resolve to `{ data, error, response }`, and reject if the network
   * fails. The list of users has the shape of the version that `headers: { Accept }` names.
   */
  readonly get: ListPageParts & ListPage & ListParts & Calls['GET']
  readonly post: Calls['POST']
  readonly put: Calls['PUT']
  readonly patch: Calls['PATCH']
  readonly delete: Calls['DELETE']
  /** Sends a request to any path in the same way: with the token, retries and revalidation. */
  fetch (path: string, init?: RequestInit): Promise<Response>
  readonly session: Pick<Session, 'current' | 'subscribe' | 'restore' | 'token' | 'renew'>
  login (credentials: { email: string, password: string }): Promise<User>
  readonly completeLogin: Session['completeLogin']
  readonly passkeyOptions: Session['passkeyOptions']
  readonly loginWithPasskey: Session['loginWithPasskey']
  readonly requestLoginMail: Session['requestLoginMail']
  readonly loginByMail: Session['loginByMail']
  readonly requestStepUpMail: Session['requestStepUpMail']
  readonly stepUp: Session['stepUp']
  readonly setOrganization: Session['setOrganization']
  /**
   * Returns the address that begins a login at a provider, for `location.assign`. The browser comes to `returnTo`,
   * where `session.restore` continues the session.
   */
  providerUrl (id: string, returnTo?: string): string
  logout (): Promise<void>
  /** Stops listening to other tabs. */
  close (): void
  readonly baseUrl: string
}

// The server's answer to these is final.
const AUTH = /\/api\/auth\/(login(\/[\w/-]+)?|refresh|logout)$/
// The second one is for a token of another tab that is not valid either.
const RENEWALS = 2

/**
 * Creates a client for a page or a program. It keeps the access token in memory, refreshes the session once for all
 * calls and tabs, repeats requests whose response was lost, and revalidates what it has read by its entity tag.
 */
export function createUsherClient (options: UsherClientOptions = {}): UsherClient {
  const { baseUrl = '', fetch = (request) => globalThis.fetch(request), retry = {}, cache: limits, apiKey, organizationId } = options
  const base = baseUrl.replace(/\/+$/, '')
  const session = new Session({ baseUrl: base, fetch, apiKey, organizationId })
  const cache = new ResponseCache(limits)
  session.subscribe(() => cache.clear())

  async function send (request: Request): Promise<Response> {
    const { method, signal } = request
    // Kept, because a request can only be sent once.
    const body = ['GET', 'HEAD'].includes(method) ? undefined : await request.arrayBuffer()
    const headers = new Headers(request.headers)
    addKey(request, headers)
    // An empty text is a body as well, which has been read.
    const content = body && (body.byteLength > 0 || request.bodyUsed) ? { body } : {}
    const sender: Sender = {}
    const attempt = () => authorize(request, headers, sender, () =>
      cache.revalidate(request, headers, () => fetch(new Request(request, { headers, ...content }))))
    return mayRepeat(method, headers) ? repeat(attempt, retry, signal) : attempt()
  }

  async function authorize (
    request: Request, headers: Headers, sender: Sender, attempt: () => Promise<Response>
  ): Promise<Response> {
    if (request.headers.has('Authorization') || AUTH.test(new URL(request.url).pathname)) return attempt()
    for (let renewals = 0; ; renewals++) {
      const token = await until(request.signal, session.token())
      const userId = session.current.user?.id
      // Another tab may have logged in as somebody else, who must not make the same write once more.
      if ((sender.userId ??= userId) !== userId) {
        throw new UsherError(401, ['The user has changed since the request was sent'], USER_CHANGED)
      }
      // So may the user have left the organisation, and the same write must not be made outside of it.
      if ((sender.organizationId ??= session.organizationId ?? '') !== (session.organizationId ?? '')) {
        throw new UsherError(
          401, ['The organization has changed since the request was sent'], ORGANIZATION_CHANGED
        )
      }
      if (token) headers.set('Authorization', `Bearer ${token}`)
      else headers.delete('Authorization')
      const response = await attempt()
      if (response.status !== 401 || renewals === RENEWALS || !await until(request.signal, session.renew(token))) {
        return response
      }
      await response.body?.cancel()
    }
  }

  const { GET, POST, PUT, PATCH, DELETE } = createClient<paths, Json>({ baseUrl: base, fetch: send })
  return {
    // What the list of users looks like depends on a header, of which openapi-fetch knows nothing.
    get: GET as UsherClient['get'],
    post: POST,
    put: PUT,
    patch: PATCH,
    delete: DELETE,
    fetch: async (path, init) => send(new Request(`${base}${requirePath(path)}`, init)),
    session,
    login: (credentials) => session.login(credentials),
    completeLogin: (factor) => session.completeLogin(factor),
    passkeyOptions: () => session.passkeyOptions(),
    loginWithPasskey: (credential) => session.loginWithPasskey(credential),
    requestLoginMail: (email) => session.requestLoginMail(email),
    loginByMail: (proof) => session.loginByMail(proof),
    requestStepUpMail: () => session.requestStepUpMail(),
    stepUp: (proof) => session.stepUp(proof),
    setOrganization: (id) => session.setOrganization(id),
    providerUrl: (id, returnTo) => `${base}/api/auth/providers/${encodeURIComponent(id)}/start` +
      (returnTo === undefined ? '' : `?returnTo=${encodeURIComponent(returnTo)}`),
    logout: () => session.logout(),
    close: () => session.close(),
    baseUrl: base,
  }
}

/** Whose token a request was sent with at first. A repetition must not act for another user or organisation. */
interface Sender { userId?: string | undefined, organizationId?: string }

// Anything else could lead to another host, which would get the token. URLs are parsed without tabs and line breaks.
function requirePath (path: string): string {
  if (!/^\/(?![/\\])[^\t\n\r]*$/.test(path)) throw new TypeError(`${path} must be a path that begins with one slash`)
  return path
}

// A call that is aborted does not wait for the session, which other calls still need.
function until<Result> (signal: AbortSignal, result: Promise<Result>): Promise<Result> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort)
    result.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
