import type { Role } from './user.ts'

/** The user behind a verified bearer token. */
export interface Actor {
  readonly id: string
  readonly role: Role
  readonly sessionId: string
}

/** Whether an actor may do something to what `ownerId` owns (the user itself, for a user record). */
export type Rule = (actor: Actor, ownerId?: string) => boolean

const member: Rule = () => true
const admin: Rule = (actor) => actor.role === 'admin'
const owner: Rule = (actor, ownerId) => actor.role === 'admin' || actor.id === ownerId

/**
 * Who may do what: the whole policy (contract 2). An actor is required for each of these; what is not named
 * here is anyone's. A host may pass rules of its own by the option `policy`.
 */
export const policy = {
  'users:create': admin,
  'users:replace': owner,
  'users:delete': owner,
  'users:grant-role': admin,
  'users:invite': admin,
  'sessions:list': member,
  'sessions:end': owner,
  'passwords:change': member,
  'audit:read': owner,
  'uploads:create': member,
  'posts:create': member,
  'posts:create-for-another': admin,
  'posts:update': owner,
  'posts:delete': owner,
} satisfies Record<string, Rule>

export type Action = keyof typeof policy
export type Policy = Record<Action, Rule>
