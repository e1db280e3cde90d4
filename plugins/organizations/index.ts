import fp from 'fastify-plugin'
import { coreOf } from '../core.ts'
import { createInvitations, type Invitations } from './invitations.ts'
import { createInviters } from './inviters.ts'
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
  const inviters = createInviters({ ...core, claims, policy })
  const dependencies = { ...core, organizations: core.options.organizations!, audit, hooks, inviters, sessions, stepUp }
  const operations = createOrganizations(dependencies)
  app.decorate('usherOrganizations', {
    operations,
    invitations: createInvitations({ ...dependencies, operations, links, mails, newUsers, throttle }),
  })
}, {
  name: 'usher-organizations',
  dependencies: [
    'usher-options', 'usher-telemetry', 'usher-database', 'usher-outbox', 'usher-access', 'usher-accounts', 'usher-audit',
    'usher-hooks', 'usher-mail-links', 'usher-sign-in', 'usher-throttle',
  ],
})
