/**
 * Returns a text as a QR code: an SVG document, dark on light also where the page is dark, with the margin that
 * scanners need.
 */
export async function toQrCode (text: string): Promise<string> {
  const [{ generate }, { toSvgSource }] = await Promise.all([import('lean-qr'), import('lean-qr/extras/svg')])
  return toSvgSource(generate(text), { on: '#000', off: '#fff', pad: 4 })
}
