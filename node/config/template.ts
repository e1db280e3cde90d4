/**
 * Returns the content of a new configuration file. Lines that begin with `//` and three spaces are examples, which work
 * when these characters are removed from all of them.
 */
export function createTemplate (): string {
  return `// What this node does besides its settings (docs/config.md). Settings of the environment and of .env take precedence.
// Secrets belong there, not here.

import { defineConfig } from 'fastify-usher'
//   import { audiences } from 'fastify-usher'
//   import { Type } from '@sinclair/typebox'

export default defineConfig({
  // Fields to add to users. x-read and x-write say who reads and writes them: anyone, owner or admin.
  //   userFields: Type.Object({
  //     bio: Type.Optional(Type.String({ maxLength: 500, 'x-read': 'anyone', 'x-write': 'owner' })),
  //   }),

  // Functions that change or reject what is about to be written. An error with a statusCode is the response.
  //   hooks: {
  //     beforeUserCreate (user) {
  //       if (user.email.endsWith('@example.net')) {
  //         throw Object.assign(new Error('This address cannot sign up'), { statusCode: 403 })
  //       }
  //     },
  //   },

  // Claims to add to access tokens.
  //   claims: (user) => ({ isStaff: user.email.endsWith('@example.com') }),

  // Who may do what: a rule for an action, of Usher or of your own. Anybody can read the addresses of users, unless
  // anybody may sign up: the rule of users:read-email hides them from all but themselves and admins.
  //   policy: {
  //     'users:read-email': audiences.owners,
  //     'posts:create': (actor) => actor.role === 'admin',
  //   },

  // Sign-up, and how long sessions last.
  //   signUp: false,
  //   sessionIdleSeconds: 14 * 86400,

  // The name and the color of the pages and mails.
  //   pages: { productName: 'My product', color: '#1d4ed8' },

  // Identity providers. This one also needs the setting PROVIDER_GITHUB_CLIENT_SECRET.
  //   publicUrl: 'http://127.0.0.1:3000',
  //   providers: { github: { clientId: 'the id of your app' } },

  // Routes of your own. app.usher.authenticate rejects requests without a valid token, and sets request.actor.
  //   routes (app) {
  //     app.get('/hello', { onRequest: app.usher.authenticate }, async ({ actor }) => ({ hello: actor }))
  //   },
})
`
}
