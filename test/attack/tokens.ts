import { createHmac, createPrivateKey, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'

/** A signing key as the node stores it in the database. */
export interface SigningKey { readonly id: string, readonly privateKey: string, readonly publicKey: string }

/** The user and session of a token. */
export interface Subject { readonly id: string, readonly role: string, readonly sessionId: string }

const LIFE_SECONDS = 900
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const now = () => Math.floor(Date.now() / 1000)

/** Signs tokens as the node does, so that a run can last longer than a token. */
export class TokenFactory {
  readonly #key: SigningKey
  readonly #privateKey: KeyObject
  readonly #stranger = generateKeyPairSync('ed25519').privateKey

  constructor (key: SigningKey) {
    this.#key = key
    this.#privateKey = createPrivateKey(key.privateKey)
  }

  /** Returns a valid token. */
  sign (subject: Subject, { from = now(), seconds = LIFE_SECONDS, claims = {} } = {}): string {
    return this.#write(
      { alg: 'EdDSA', typ: 'JWT', kid: this.#key.id }, { ...claimsOf(subject, from, seconds), ...claims }
    )
  }

  /** Returns one token of each kind that must never be accepted, although the sessions of both subjects are live. */
  forge (subject: Subject, member: Subject): Record<string, string> {
    const header = { alg: 'EdDSA', typ: 'JWT', kid: this.#key.id }
    const claims = claimsOf(subject, now(), LIFE_SECONDS)
    const genuine = this.sign(subject)
    const [head, , signature] = this.sign(member).split('.') as [string, string, string]
    const asAdmin = encode({ ...claimsOf(member, now(), LIFE_SECONDS), role: 'admin' })
    const unsigned = (first: object) => `${encode(first)}.${asAdmin}.`
    const hmacHead = encode({ alg: 'HS256', typ: 'JWT', kid: this.#key.id })
    const hmac = createHmac('sha256', this.#key.publicKey).update(`${hmacHead}.${asAdmin}`).digest('base64url')
    return {
      expired: this.sign(subject, { from: now() - 2 * LIFE_SECONDS }),
      'just expired': this.sign(subject, { from: now() - LIFE_SECONDS - 1 }),
      'from the future': this.sign(subject, { from: now() + 3600 }),
      'too long-lived': this.sign(subject, { seconds: 10 * 365 * 86400 }),
      'of another issuer': this.sign(subject, { claims: { iss: 'another' } }),
      'of another audience': this.sign(subject, { claims: { aud: 'another' } }),
      'of another role': this.sign(subject, { claims: { role: 'root' } }),
      'without an expiry': this.sign(subject, { claims: { exp: undefined } }),
      'with an expiry in words': this.sign(subject, { claims: { exp: '9999999999' } }),
      'another payload': `${head}.${asAdmin}.${signature}`,
      'no signature': `${head}.${asAdmin}.`,
      'alg none': unsigned({ alg: 'none', typ: 'JWT' }),
      'alg NONE': unsigned({ alg: 'NONE', typ: 'JWT', kid: this.#key.id }),
      'alg HS256 by the public key': `${hmacHead}.${asAdmin}.${hmac}`,
      'signed by a stranger': this.#write(header, claims, this.#stranger),
      'unknown kid': this.#write({ ...header, kid: '../../etc/passwd' }, claims, this.#stranger),
      'a key of its own': this.#write(
        { ...header, jwk: this.#stranger.export({ format: 'jwk' }) }, claims, this.#stranger
      ),
      'a URL of keys': this.#write({ ...header, jku: 'http://127.0.0.1:1/keys' }, claims, this.#stranger),
      'another type': this.#write({ ...header, typ: 'at+jwt' }, claims),
      'a member twice': this.#writeText(
        `{"alg":"EdDSA","typ":"JWT","kid":"${this.#key.id}"}`, `${JSON.stringify(claims).slice(0, -1)},"role":"admin"}`
      ),
      'padding added': `${genuine}==`,
      'cut off': genuine.slice(0, -1),
      'two tokens': `${genuine} ${genuine}`,
      garbage: 'garbage',
      empty: '',
    }
  }

  #write (header: object, claims: object, key = this.#privateKey): string {
    return this.#writeText(JSON.stringify(header), JSON.stringify(claims), key)
  }

  #writeText (header: string, claims: string, key = this.#privateKey): string {
    const signed = `${Buffer.from(header).toString('base64url')}.${Buffer.from(claims).toString('base64url')}`
    return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`
  }
}

function claimsOf ({ id, role, sessionId }: Subject, iat: number, seconds: number) {
  return { sub: id, sid: sessionId, role, iat, exp: iat + seconds, iss: 'usher', aud: 'usher' }
}
