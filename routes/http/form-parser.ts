import { isUtf8 } from 'node:buffer'
import { parse } from 'node:querystring'
import type { FastifyInstance } from 'fastify'
import { InvalidInput, UnsupportedMediaType } from '../../schema/http/errors.ts'

/** The media type of forms. */
export const FORM = 'application/x-www-form-urlencoded'

const FIELDS = 20

/**
 * Replaces the parsers of a scope by one of forms.
 * @param bodyLimit the maximum size of a form, in bytes
 * @param maxKeys how many fields it may have; further ones are ignored
 */
export function addFormParser (app: FastifyInstance, bodyLimit: number, maxKeys = FIELDS): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(FORM, { parseAs: 'buffer', bodyLimit }, (_, body, done) => {
    if (!isUtf8(body as Buffer)) return done(new InvalidInput('the form is not valid UTF-8'))
    done(null, { ...parse(body.toString(), '&', '=', { maxKeys }) })
  })
}

/** Adds a parser that rejects all other media types and names that of forms. */
export function rejectOtherForms (app: FastifyInstance): void {
  app.addContentTypeParser('*', (_, __, done) => done(new UnsupportedMediaType(FORM)))
}
