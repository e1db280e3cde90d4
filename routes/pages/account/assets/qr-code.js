// The policy of the pages forbids to turn text into markup, so the elements of an image are created one by one.
const SVG = 'http://www.w3.org/2000/svg'
const ATTRIBUTES = {
  svg: ['viewBox'],
  rect: ['x', 'y', 'width', 'height', 'fill'],
  path: ['d', 'fill'],
}

/** Returns an element with the image of a QR code, from an SVG document of rectangles and paths. */
export function toImage (source, label) {
  const [image, ...shapes] = [...source.matchAll(/<(svg|rect|path)\b([^>]*)>/g)].map(([, name, attributes]) => {
    const element = document.createElementNS(SVG, name)
    for (const [, attribute, value] of attributes.matchAll(/([\w-]+)="([^"]*)"/g)) {
      if (ATTRIBUTES[name].includes(attribute)) element.setAttribute(attribute, value)
    }
    return element
  })
  image.append(...shapes)
  image.setAttribute('role', 'img')
  image.setAttribute('aria-label', label)
  return image
}
