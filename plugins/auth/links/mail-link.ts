import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { hashSecret } from '../cookie-value.ts'

/** The pages to which links in mails lead. */
export type MailPage = '/set-password' | '/sign-up/confirm' | '/verify-email' | '/undo' | '/login' | '/forgot-password'

/**
 * Returns the address of a page. The `Host` header of the request must not be used: the client that requests the link could choose
 * where it leads.
 */
export function pageOf (app: FastifyInstance, page: MailPage): string {
  const { passwordUrl, publicUrl, prefix } = app.usherOptions
  if (page === '/set-password' && passwordUrl !== undefined) return passwordUrl
  return `${publicUrl?.replace(/\/+$/, '') ?? (app.server.listening ? app.listeningOrigin : '')}${prefix}${page}`
}

/** Creates a token. Returns the link with it, and its hash, which is what the database stores. */
export function createLink (app: FastifyInstance, page: MailPage): { hash: Uint8Array, link: string } {
  const token = randomBytes(32).toString('base64url')
  return { hash: hashSecret(token), link: `${pageOf(app, page)}#token=${token}` }
}
