import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Forbidden, UsherError } from '../../schema/http/errors.ts'
import { hasRole } from '../../schema/options/organizations.ts'
import { isGranted, isReadAction, type Action, type ReadAction } from '../../schema/options/policy.ts'
import type { Usher } from '../../schema/options/usher.ts'
import { OrganizationRequired } from '../../schema/organizations/organizations.ts'
import type { Caller } from '../access/caller.ts'
import { denialOf } from '../access/policy.ts'
import { sendError, setErrorHeaders, translate } from '../http/errors.ts'
import { createApiKeyOperations } from './api-keys.ts'
import { createCredentialOperations } from './credentials.ts'
import { createOrganizationOperations } from './organizations.ts'
import { createPerform } from './perform.ts'
import { createPostOperations } from './posts.ts'
import { createSessionOperations } from './sessions.ts'
import { createUploadOperations } from './uploads.ts'
import { createUserOperations } from './users.ts'

type Hook = (request: FastifyRequest, reply: FastifyReply) => Promise<void>

/** Creates the decorator that a host gets (contract 12.1). */
export function createUsher (app: FastifyInstance): Usher {
  const {
    usherAccess: { actors, authenticate: identify, callerOf }, usherSignIn: { stepUp }, usherDatabase: { clock },
    usherAudit: audit,
    usherOutbox: { on, failed, retry }, usherOptions: { schema, policy, organizations }, usherTelemetry: { metrics },
  } = app
  const perform = createPerform(app)

  // On a route of the host, the host's error handler runs, which does not hide the cause of a failure.
  async function authenticate (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    await identify(request, reply).catch((error: FastifyError) => { throw translate(error) })
  }

  // Nor does that handler set the headers that belong to an error.
  const guard = (hook: Hook): Hook => async (request, reply) => {
    try {
      await hook(request, reply)
    } catch (error) {
      if (error instanceof UsherError) setErrorHeaders(error as FastifyError, reply)
      throw error
    }
  }

  async function identifyReader (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    actors.set(request, null)
    if (request.headers.authorization !== undefined) await authenticate(request, reply)
  }

  // No action of the policy permits what the route does. So an API key with a list of actions does not permit it.
  async function authenticateFully (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    await authenticate(request, reply)
    if (actors.in(request)?.actions != null) check(request, () => { throw new Forbidden() })
  }

  // Runs a check on a route of the host, whose error handler does not write rejections to the account log.
  function check (request: FastifyRequest, run: (caller: Caller) => void): void {
    const caller = callerOf(request, { via: 'api' })
    try {
      run(caller)
    } catch (error) {
      if (error instanceof UsherError && (error as InstanceType<typeof Forbidden>).statusCode === 403) {
        audit.addRejection(caller, 403)
      }
      throw error
    }
  }

  return Object.freeze<Usher>({
    authenticate: guard(authenticateFully),

    identify: guard(async (request, reply) => {
      await identifyReader(request, reply)
      if (actors.in(request)?.actions != null) actors.set(request, null)
    }),

    allow (action, options = {}) {
      const { resourceOf, maxAge } = typeof options === 'function' ? { resourceOf: options } : options
      if (!Object.hasOwn(policy, action)) {
        throw new Error(`usher: allow: the policy has no action ${action}: define it in the option policy`)
      }
      const isRead = isReadAction(action)
      return guard(async (request, reply) => {
        await (isRead ? identifyReader : authenticate)(request, reply)
        check(request, (caller) => {
          if (maxAge !== undefined) stepUp.requireToken(caller.getActor(), maxAge, clock.now())
          caller.authorize(action as Action | ReadAction, resourceOf?.(request))
        })
      })
    },

    requireRole: (role) => guard(async (request, reply) => {
      await authenticateFully(request, reply)
      check(request, ({ actor }) => { if (actor?.role !== role && actor?.role !== 'admin') throw new Forbidden() })
    }),

    requireOrganization (action) {
      if (!organizations) throw new Error('usher: requireOrganization: set the option organizations')
      if (action !== undefined && !Object.hasOwn(policy, action)) {
        throw new Error(`usher: requireOrganization: the policy has no action ${action}: define it in the option policy`)
      }
      return guard(async (request, reply) => {
        await (action === undefined ? authenticateFully : authenticate)(request, reply)
        check(request, (caller) => {
          const actor = caller.getActor()
          if (!actor.organization) throw new OrganizationRequired()
          if (action === undefined) return
          if (!isGranted(actor, action)) throw denialOf(actor, action)
          if (!hasRole(organizations, actor, actor.organization.id, action)) throw new Forbidden()
        })
      })
    },

    errorHandler: sendError,

    schema,
    users: Object.freeze(createUserOperations(app, perform)),
    sessions: Object.freeze(createSessionOperations(app, perform)),
    credentials: Object.freeze(createCredentialOperations(app, perform)),
    apiKeys: Object.freeze(createApiKeyOperations(app, perform)),
    posts: Object.freeze(createPostOperations(app, perform)),
    uploads: Object.freeze(createUploadOperations(app, perform)),
    organizations: Object.freeze(createOrganizationOperations(app, perform)),
    on,
    events: Object.freeze({ failed, retry }),
    metrics: () => metrics.read(),
  })
}
