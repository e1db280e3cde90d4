import { usher } from './lib/usher.js'

export default {
  // The browser reaches Usher below /accounts of this site, so the cookies are those of this site.
  rewrites: async () => [{ source: '/accounts/:path*', destination: `${usher}/:path*` }],
}
