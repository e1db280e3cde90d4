import type { Actor } from './actors.ts'

/** What must happen to a request, whatever else is wrong with it. */
export type Verdict = 'anyone' | 'unauthenticated' | 'forbidden' | 'allowed'

interface Demand {
  /** Such as `PUT /api/users/{id}`. */
  readonly operation: string
  readonly isPublic: boolean
  /** The id in the path. */
  readonly id?: string | undefined
  readonly body?: unknown
  readonly query?: Readonly<Record<string, string>>
}

type Rule = (actor: Actor, demand: Demand) => boolean

const member: Rule = () => true
const admin: Rule = ({ role }) => role === 'admin'
const owner: Rule = (actor, { id }) => actor.role === 'admin' || actor.id === id?.toLowerCase()

// This model of the policy (contract 2 and 4) is a deliberate second implementation, independent of the product's code.
const rules: Readonly<Record<string, Rule>> = {
  'GET /api/protected': member,
  'GET /api/auth/sessions': member,
  'DELETE /api/auth/sessions': member,
  'DELETE /api/auth/sessions/{id}': member,
  'PUT /api/auth/password': member,
  'POST /api/users': admin,
  'PUT /api/users/{id}': (actor, demand) =>
    owner(actor, demand) && (actor.role === 'admin' || grantsNothing(actor, demand)),
  'PATCH /api/users/{id}': (actor, demand) =>
    owner(actor, demand) && (actor.role === 'admin' || (grantsNothing(actor, demand) && !disables(demand))),
  'DELETE /api/users/{id}': owner,
  'GET /api/users/{id}/sessions': owner,
  'DELETE /api/users/{id}/sessions': owner,
  'DELETE /api/users/{id}/sessions/{sessionId}': owner,
  'POST /api/users/{id}/invitation': admin,
  'POST /api/users/{id}/email-verification': owner,
  'GET /api/audit': (actor, { query }) =>
    actor.role === 'admin' || query?.['user'] === undefined || query['user'].toLowerCase() === actor.id,
  'POST /api/uploads': member,
}

/**
 * Returns the verdict on a request, or undefined for an operation that the model does not know. Only a live actor may
 * use those.
 */
export function judge (actor: Actor, demand: Demand): Verdict | undefined {
  if (demand.isPublic) return 'anyone'
  if (!actor.isLive) return 'unauthenticated'
  const rule = rules[demand.operation]
  return rule && (rule(actor, demand) ? 'allowed' : 'forbidden')
}

const disables = ({ body }: Demand) => (body as { disabled?: unknown } | null | undefined)?.disabled !== undefined

function grantsNothing ({ role }: Actor, { body }: Demand): boolean {
  const given = (body as { role?: unknown } | null | undefined)?.role
  return given === undefined || given === role
}
