import type { Role } from './user.ts'

/** The user behind a verified access token, with the session to which the token belongs. */
export interface Actor {
  readonly id: string
  readonly role: Role
  readonly sessionId: string
}

/** Returns whether an actor may perform an action on something that `ownerId` owns. A user record is owned by its user. */
export type Rule = (actor: Actor, ownerId?: string) => boolean

const member: Rule = () => true
const admin: Rule = (actor) => actor.role === 'admin'
const owner: Rule = (actor, ownerId) => actor.role === 'admin' || actor.id === ownerId

/**
 * The whole policy: one rule per action (contract 2). Each action requires an actor. Everything that is not listed here is
 * public. A host can replace rules with the option `policy`.
 */
export const policy = {
  'users:create': admin,
  'users:replace': owner,
  'users:delete': owner,
  'users:grant-role': admin,
  'users:invite': admin,
  'users:verify-email': owner,
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
