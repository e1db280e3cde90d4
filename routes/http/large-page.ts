// In characters. A larger page is encoded once it is sent a second time, and then sent to all as the same bytes. Node
// would encode its text again for each response, and hundreds of them for a batch, which are sent in the same turn
// of the event loop, would stall the node. A smaller page is cheaper as text, because Node writes it together with the
// head.
const LARGE = 2 * 1024

/** Encodes a page that is sent again, if it is large. */
export function encodeLarge (page: string | Buffer): string | Buffer {
  return typeof page === 'string' && page.length > LARGE ? Buffer.from(page) : page
}
