import fp from 'fastify-plugin'
declare module 'fastify' {
  interface FastifyInstance {
    usherStorage: { sweep(): Promise<void> }
  }
}
export default fp(async function storage (app) {
  app.decorate('usherStorage', { sweep: async () => {} })
}, { name: 'usher-storage' })
