import { defineConfig } from 'vite'

export default defineConfig({
  server: {
    // While you develop, Usher is mounted below /accounts of another server.
    proxy: { '/accounts': { target: 'http://127.0.0.1:3000', ws: true } },
  },
})
