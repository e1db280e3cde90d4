import { isIP } from 'node:net'
import type { Ajv } from 'ajv'
import { isAsciiAddress, toAsciiAddress } from '../../schema/strings/address.ts'
import { isColor } from '../../schema/options/color.ts'
import { isDatabaseUrl } from '../../schema/options/database-url.ts'
import { isBlank } from '../../schema/strings/text.ts'
import { normalizeOrigin } from '../../schema/http/origin.ts'
import { isPublicUrl } from '../../schema/options/public-url.ts'

/** Adds the formats of settings to a validator. */
export function addSettingFormats (ajv: Ajv): void {
  ajv.addFormat('email', (text: string) => isAsciiAddress(toAsciiAddress(text)))
  ajv.addFormat('postgres', isDatabaseUrl)
  ajv.addFormat('web', isPublicUrl)
  ajv.addFormat('page', (text: string) => /^https?:\/\/[^@#\s]+$/.test(text) && URL.canParse(text))
  ajv.addFormat('smtp', (text: string) => /^smtps?:\/\/[^#\s]+$/.test(text) && URL.canParse(text))
  ajv.addFormat('mailbox', isMailbox)
  ajv.addFormat('color', isColor)
  ajv.addFormat('name', (text: string) => !isBlank(text) && !/[\p{Cc}\p{Cs}]/u.test(text))
  ajv.addFormat('issuer', /^[^\s\p{Cc}\p{Cs}]+$/u)
  ajv.addFormat('origin', isOrigin)
  ajv.addFormat('network', isNetwork)
}

function isMailbox (text: string): boolean {
  const [, address = text] = /^[^<>@,\p{Cc}]+ <([^<>]+)>$/u.exec(text) ?? []
  return /^[^\s<>@,]+@[^\s<>@,]+$/.test(address)
}

function isOrigin (text: string): boolean {
  return text === '*' || normalizeOrigin(text) !== undefined
}

// Accepts the values of Fastify's `trustProxy`, except a number of hops. A number does not say which client to trust,
// so Fastify trusts none, and the setting would silently have no effect.
function isNetwork (text: string): boolean {
  if (['true', 'false', 'loopback', 'linklocal', 'uniquelocal'].includes(text)) return true
  const [address = '', bits = '1', ...rest] = text.split('/')
  return rest.length === 0 && isIP(address) > 0 && /^[1-9]\d{0,2}$/.test(bits) &&
    Number(bits) <= (isIP(address) === 4 ? 32 : 128)
}
