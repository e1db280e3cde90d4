/** Number of bytes from the beginning of a file that `mediaTypeOf` needs. */
export const HEAD_BYTES = 4100

/**
 * Returns the media type of a file, found out from its first bytes, regardless of what the client claims (contract
 * 5.4). A file without a known signature is `text/plain` if it is UTF-8 text without control characters, and otherwise
 * `application/octet-stream`.
 *
 * @param head the first `HEAD_BYTES` bytes of the file, or all bytes if there are fewer
 * @param size the size of the whole file in bytes
 */
export async function mediaTypeOf (head: Uint8Array, size: number): Promise<string> {
  // Loaded with the first upload, so that it does not delay the start.
  const { fileTypeFromBuffer } = await import('file-type')
  const known = await fileTypeFromBuffer(head)
  if (known) return known.mime
  return isText(head, size > head.length) ? 'text/plain' : 'application/octet-stream'
}

// With `stream`, the text may end within a character. This is right for the head of a longer file, but not for a whole
// file.
function isText (head: Uint8Array, stream: boolean): boolean {
  try {
    // eslint-disable-next-line no-control-regex
    return !/[\u0000-\u0008\u000b\u000e-\u001f\u007f]/.test(
      new TextDecoder('utf-8', { fatal: true }).decode(head, { stream })
    )
  } catch {
    return false
  }
}
