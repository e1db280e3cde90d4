import { isIP } from 'node:net'
import { domainToASCII, domainToUnicode } from 'node:url'

// The longest label and the longest domain that DNS has (RFC 1035 2.3.4).
const LABEL_LENGTH = 63
const DOMAIN_LENGTH = 253

// As in the fast mode of ajv-formats.
const WORD = "[a-z0-9!#$%&'*+/=?^_`{|}~-]+"
const LABEL = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?'
const ASCII_ADDRESS = new RegExp(`^${WORD}(?:\\.${WORD})*@(?:${LABEL}\\.)+${LABEL}$`, 'i')

/**
 * Returns an email address with its domain in ASCII (RFC 5891), so that all spellings of an internationalized domain
 * are one address, which every mail server takes. What is no such address is returned as it is.
 */
export function toAsciiAddress (text: string): string {
  const at = text.lastIndexOf('@')
  const domain = toAsciiDomain(text.slice(at + 1))
  return at === -1 || domain === undefined ? text : `${text.slice(0, at)}@${domain}`
}

/** Returns what a search looks for in addresses: the domain, or a part of it, in ASCII. */
export const toAsciiSearch = (text: string): string =>
  text.includes('@') ? toAsciiAddress(text) : toAsciiDomain(text) ?? text

/** Returns whether a text is an email address of ASCII, and labels of its domain that begin with `xn--` are valid. */
export function isAsciiAddress (text: string): boolean {
  return ASCII_ADDRESS.test(text) && toAsciiDomain(text.slice(text.lastIndexOf('@') + 1)) !== undefined
}

/**
 * Returns the form of an address that is the same for all spellings that differ in case only. It is equal to
 * `lower(… collate "C")` of PostgreSQL, which the indexes of addresses use.
 */
export function foldEmail (email: string): string {
  return email.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

/**
 * Returns what an address is counted by in limits of what reaches its mailbox. All addresses that differ only in what
 * follows a plus sign reach one mailbox, so they are one. The address without a plus sign is another: it belongs to
 * whoever has the mailbox, who must not lose by what others do to the endless number of the rest.
 */
export const foldMailbox = (email: string): string => foldEmail(email).replace(/^([^+@]+)\+[^@]*@/, '$1+@')

// Returns undefined if a domain cannot exist. One of ASCII without internationalized labels stays as it was given.
function toAsciiDomain (domain: string): string | undefined {
  if (isAscii(domain) && !/(^|\.)xn--/i.test(domain)) return domain
  // The conversion of a long text would take long. Each character is at most two of JavaScript's.
  if (domain.length > 2 * DOMAIN_LENGTH) return undefined
  // What stands for something in a URL would be cut off or decoded, rather than being refused.
  if (![...domain].every((character) => !isAscii(character) || /[a-z0-9.-]/i.test(character))) return undefined
  const ascii = domainToASCII(domain)
  // Digits in another script would become an IPv4 address.
  if (ascii === '' || ascii.length > DOMAIN_LENGTH || isIP(ascii) > 0) return undefined
  return ascii.split('.').every(isLabel) ? ascii : undefined
}

// Not every version of Node checks labels of ASCII. One that stands for another of ASCII would be a second spelling.
function isLabel (label: string): boolean {
  if (label.length > LABEL_LENGTH) return false
  if (!label.startsWith('xn--')) return true
  const unicode = domainToUnicode(label)
  return !isAscii(unicode) && domainToASCII(unicode) === label
}

// eslint-disable-next-line no-control-regex
const isAscii = (text: string): boolean => /^[\x00-\x7f]*$/.test(text)
