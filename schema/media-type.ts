import { fileTypeFromBuffer } from 'file-type'

/** Octets of a file's beginning that `mediaTypeOf` needs. */
export const HEAD_OCTETS = 4100

/**
 * The media type of a file, as its first bytes say, whatever its client claims (contract 5.4). What no signature
 * tells is text where it reads as text in UTF-8, else `application/octet-stream`.
 *
 * @param head the first `HEAD_OCTETS` of the file, or all of it
 * @param size octets of the whole file
 */
export async function mediaTypeOf (head: Uint8Array, size: number): Promise<string> {
  const known = await fileTypeFromBuffer(head)
  if (known) return known.mime
  return isText(head, size > head.length) ? 'text/plain' : 'application/octet-stream'
}

// A character may be cut where the head ends, but not where the file does.
function isText (head: Uint8Array, stream: boolean): boolean {
  try {
    // eslint-disable-next-line no-control-regex
    return !/[\u0000-\u0008\u000b\u000e-\u001f\u007f]/.test(new TextDecoder('utf-8', { fatal: true }).decode(head, { stream }))
  } catch {
    return false
  }
}
