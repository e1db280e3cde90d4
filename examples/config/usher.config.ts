import { Type } from '@sinclair/typebox'
import { defineConfig } from 'fastify-usher'

export default defineConfig({
  // A field of users: everybody reads it, and each user sets the own one.
  userFields: Type.Object({
    bio: Type.Optional(Type.String({ maxLength: 500, 'x-read': 'anyone', 'x-write': 'owner' }))
  }),

  // A hook: only addresses of the company get an account.
  hooks: {
    beforeUserCreate ({ email }) {
      if (email.endsWith('@example.com')) return
      throw Object.assign(new Error('Only addresses of example.com can have an account'), { statusCode: 403 })
    }
  },

  // A provider with which users sign in. Its secret is the setting PROVIDER_GITHUB_CLIENT_SECRET.
  publicUrl: 'http://localhost:3000',
  providers: {
    github: { clientId: 'Iv1.0123456789abcdef' }
  },

  // Routes beside those of Usher.
  routes (app) {
    app.get('/notes/mine', { onRequest: app.usher.authenticate }, async ({ actor }) =>
      app.usher.posts.list({ author: actor!.id }))
  }
})
