import fp from 'fastify-plugin'
import { coreOf } from '../core.ts'
import { createInvitations, type Invitations } from './invitations.ts'
import { createOrganizations, type OrganizationOperations } from './organizations.ts'

declare module 'fastify' {
  interface FastifyInstance {
    usherOrganizations: OrganizationPlugin
  }
}

export interface OrganizationPlugin {
  readonly operations: OrganizationOperations
  readonly invitations: Invitations
}

/** Organisations with members, roles and invitations (contract 19). It is registered with their option only. */
export default fp(async function organizations (app) {
  const {
    usherAccess: { claims, policy, sessions }, usherAccounts: { newUsers }, usherAudit: audit, usherHooks: hooks,
    usherMailLinks: links, usherOutbox: { mails }, usherSignIn: { stepUp }, usherThrottle: throttle,
  } = app
  const core = coreOf(app)
  const dependencies = { ...core, organizations: core.options.organizations!, audit, hooks, sessions, stepUp }
  const operations = createOrganizations(dependencies)
  app.decorate('usherOrganizations', {
    operations,
    invitations: createInvitations({
      ...dependencies, operations, claims, policy, links, mails, newUsers, throttle,
    }),
  })
}, {
  name: 'usher-organizations',
  dependencies: [
    'usher-options', 'usher-telemetry', 'usher-database', 'usher-outbox', 'usher-access', 'usher-accounts', 'usher-audit',
    'usher-hooks', 'usher-mail-links', 'usher-sign-in', 'usher-throttle',
  ],
})
