/** Whether a text is a CSS color in hexadecimal notation, such as #08f or #0088ff. */
export const isColor = (text: string): boolean => /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.test(text)

/** Returns the relative luminance of a color (WCAG 2.2), from 0 to 1. */
export function luminanceOf (color: string): number {
  const [red, green, blue] = channelsOf(color).map((channel) => {
    const value = channel / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  }) as Channels
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

type Channels = [red: number, green: number, blue: number]

function channelsOf (color: string): Channels {
  const digits = color.slice(1)
  const channels = digits.length === 3 ? [...digits].map((digit) => digit + digit) : digits.match(/../g)!
  return channels.map((channel) => parseInt(channel, 16)) as Channels
}

function contrastOf (one: number, other: number): number {
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)
}

/**
 * Returns the color of text on a background: black or white, whichever has the higher contrast. One of them always has
 * a contrast of at least 4.5.
 */
export function textColorOn (background: string): '#000000' | '#ffffff' {
  const luminance = luminanceOf(background)
  return contrastOf(luminance, 0) > contrastOf(luminance, 1) ? '#000000' : '#ffffff'
}

const VISIBLE = 3

/**
 * Returns a color if it can be seen as a line on a background (a contrast of at least 3), otherwise the nearest one on
 * the way to black or white that can.
 */
export function lineColorOn (background: string, color: string): string {
  const luminance = luminanceOf(background)
  const end = textColorOn(background) === '#000000' ? 0 : 255
  for (let share = 0; share < 1; share += 0.05) {
    const mixed = channelsOf(color).map((channel) => Math.round(channel + (end - channel) * share))
    const line = `#${mixed.map((channel) => channel.toString(16).padStart(2, '0')).join('')}`
    if (contrastOf(luminanceOf(line), luminance) >= VISIBLE) return line
  }
  return textColorOn(background)
}
