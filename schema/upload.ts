import { Type } from '@sinclair/typebox'
import { content } from './reply.ts'
import { block, Id, line } from './text.ts'

const file = { contentMediaType: 'application/octet-stream', description: 'The file' }
const description = block({ maxLength: 2000, description: 'What the file is', examples: ['A greeting'] })

/** POST /api/uploads (contract 5.1), as it is documented. */
export const UploadForm = Type.Object({ file: Type.String(file), description }, { title: 'UploadForm' })

/** What is read of that form, as it is checked. */
export const UploadInput = Type.Object({
  file: Type.Unknown(file),
  filename: Type.Optional(line({ maxLength: 255 })),
  description,
})

/** Octets that a description of 2,000 characters may take; one that is cut there is too long in any case. */
export const MAX_DESCRIPTION_OCTETS = 8192

/** An upload, as its creation answers it. */
export const Upload = Type.Object({
  fileUrl: Type.String({ description: 'Where the bytes are; absolute where the public URL is set' }),
  id: Id,
  filename: Type.String({ description: 'As the client named it' }),
  mediaType: Type.String({ description: 'As the bytes say' }),
  size: Type.Integer({ description: 'Octets' }),
  sha256: Type.String({ description: 'Hexadecimal' }),
  description: Type.String(),
}, { title: 'Upload', description: 'The file and its record are stored' })

export const UploadParams = Type.Object({ id: Type.String() })

/** GET /api/uploads/{id} (contract 5.2): the bytes, or a range of them. */
export const UploadBytes = content('The bytes', { 'application/octet-stream': Type.String() })
export const UploadRange = content('A range of the bytes', { 'application/octet-stream': Type.String() })
export const NotModified = Type.Null({ description: 'The client has them already' })

/**
 * The name a client gave a file: data, never a path, so what stands before the last separator goes. A file
 * without a name of its own is called `file`.
 */
export function basename (given: string | undefined): string {
  const name = given?.split(/[/\\]/).at(-1) ?? ''
  return /^\s*\.*\s*$/.test(name) ? 'file' : name
}

// What a browser shows without running anything of it. Not SVG or HTML, which carry scripts, nor PDF, which no
// browser shows in a sandbox.
const inline = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'text/plain'])

/** Whether a browser may show a file of that type; any other is to be saved (contract 5.2). */
export function isShown (mediaType: string): boolean {
  return inline.has(mediaType)
}
