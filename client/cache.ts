/** The limits of the responses that a client keeps. */
export interface CacheOptions {
  /** Default: 200. */
  entries?: number
  /** The size of all bodies together. No entry may have more than a quarter of it. Default: 4 MiB. */
  bytes?: number
}

interface Entry { readonly etag: string, readonly headers: Headers, readonly body: ArrayBuffer }

/** Keeps JSON responses with an entity tag. None is used without asking the server whether it is current. */
export class ResponseCache {
  // In order of their last use.
  readonly #entries = new Map<string, Entry>()
  readonly #maxEntries: number
  readonly #maxBytes: number
  #bytes = 0
  #generation = 0

  constructor ({ entries = 200, bytes = 4 * 1024 * 1024 }: CacheOptions = {}) {
    this.#maxEntries = entries
    this.#maxBytes = bytes
  }

  /** Forgets all responses, and those that are on their way: they belong to another user. */
  clear (): void {
    this.#entries.clear()
    this.#bytes = 0
    this.#generation++
  }

  /**
   * Sends a request with the entity tag of the response that is kept for it. Returns that response if the server
   * confirms it.
   */
  async revalidate (
    { method, url, headers: given }: Request, headers: Headers, send: () => Promise<Response>
  ): Promise<Response> {
    // A caller that has sent conditions wants to see the 304 itself.
    if (method !== 'GET' || ['If-None-Match', 'If-Modified-Since', 'Range'].some((name) => given.has(name))) {
      return send()
    }
    const key = `${url} ${headers.get('Accept')}`
    const known = this.#entries.get(key)
    const generation = this.#generation
    if (known) headers.set('If-None-Match', known.etag)
    const response = await send()
    if (response.status === 304 && known) {
      const merged = new Headers(known.headers)
      response.headers.forEach((value, name) => merged.set(name, value))
      if (generation === this.#generation) this.#set(key, known)
      // Every caller gets a copy of the body.
      return new Response(known.body, { headers: merged })
    }
    const etag = response.headers.get('ETag')
    const [type, control] = ['Content-Type', 'Cache-Control'].map((name) => response.headers.get(name) ?? '')
    if (response.status !== 200 || !etag || !/json/.test(type!) || /no-store/.test(control!)) return response
    const body = await response.arrayBuffer()
    if (generation === this.#generation) this.#set(key, { etag, headers: response.headers, body })
    return new Response(body, { headers: response.headers })
  }

  #set (key: string, entry: Entry): void {
    this.#delete(key)
    if (entry.body.byteLength > this.#maxBytes / 4) return
    this.#entries.set(key, entry)
    this.#bytes += entry.body.byteLength
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#maxEntries && this.#bytes <= this.#maxBytes) return
      this.#delete(oldest)
    }
  }

  #delete (key: string): void {
    this.#bytes -= this.#entries.get(key)?.body.byteLength ?? 0
    this.#entries.delete(key)
  }
}
