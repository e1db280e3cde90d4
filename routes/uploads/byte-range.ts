import type { FastifyRequest } from 'fastify'
import type { ByteRange } from '../../plugins/uploads/backend.ts'

/**
 * Returns the range of bytes that a GET request asks for (RFC 9110 14.1.2), or undefined if it asks for none. Several
 * ranges are not supported.
 */
export function readRange (
  { method, headers: { range = '' } }: FastifyRequest, size: number
): ByteRange | 'unsatisfiable' | undefined {
  const [, list = ''] = /^bytes=(.*)$/i.exec(range) ?? []
  const [one, ...others] = list.split(',').map((part) => part.trim()).filter(Boolean)
  if (method !== 'GET' || one === undefined || others.length > 0) return
  const [, first = '', last = ''] = /^(\d*)-(\d*)$/.exec(one) ?? []
  const start = first === '' ? size - Math.min(size, Number(last)) : Number(first)
  const end = first === '' || last === '' ? size - 1 : Math.min(size - 1, Number(last))
  return start <= end ? { start, end } : 'unsatisfiable'
}
