/** Whether a text is a CSS color in hexadecimal notation, such as #08f or #0088ff. */
export const isColor = (text: string): boolean => /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.test(text)

/**
 * Returns the color of text on a background: black or white, whichever has the higher contrast (WCAG 2.2, relative
 * luminance). One of them always has a contrast of at least 4.5.
 */
export function textColorOn (background: string): '#000000' | '#ffffff' {
  const digits = background.slice(1)
  const channels = digits.length === 3 ? [...digits].map((digit) => digit + digit) : digits.match(/../g)!
  const [red, green, blue] = channels.map((channel) => {
    const value = parseInt(channel, 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  }) as [number, number, number]
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
  return (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) ? '#000000' : '#ffffff'
}
