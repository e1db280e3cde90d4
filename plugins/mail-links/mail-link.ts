import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { Options } from '../../schema/options/options.ts'
import { baseUrlOf } from '../../schema/options/public-url.ts'
import type { Core } from '../core.ts'
import type { Mails } from '../outbox/mails/index.ts'
import { hashSecret } from '../access/secrets.ts'

/** The pages to which links in mails lead. */
export type MailPage =
  '/set-password' | '/sign-up/confirm' | '/verify-email' | '/undo' | '/login' | '/login/mail/confirm' | '/forgot-password' |
  '/join'

/**
 * Creates the functions that make links to pages. The `Host` header of the request must not be used: the client that
 * requests the link could choose where it leads.
 * @param app where to find the address on which the server listens, if there is no public URL
 */
export function createLinkFactory (app: Pick<FastifyInstance, 'server' | 'listeningOrigin'>, options: Options) {
  /** Returns the address of a page. */
  function pageOf (page: MailPage): string {
    if (page === '/set-password' && options.passwordUrl !== undefined) return options.passwordUrl
    return `${baseUrlOf(options, app.server.listening ? app.listeningOrigin : '')}${page}`
  }

  return {
    pageOf,

    /** Creates a token. Returns the link with it, and its hash, which is what the database stores. */
    create (page: MailPage): MailLink {
      const token = randomBytes(32).toString('base64url')
      return { hash: hashSecret(token), link: `${pageOf(page)}#token=${token}` }
    },
  }
}

export type LinkFactory = ReturnType<typeof createLinkFactory>

/** The dependencies of everything that sends links by mail. */
export interface LinkDependencies extends Core {
  links: LinkFactory
  mails: Mails
}

/** A link in a mail, and the hash of its token. */
export interface MailLink { hash: Uint8Array, link: string }
