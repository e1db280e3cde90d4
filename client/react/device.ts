import { format, type Texts } from './texts.ts'

// The order matters: Edge also says Chrome, and Chrome also says Safari.
const BROWSERS: Readonly<Record<string, RegExp>> = {
  Edge: /\bEdg(e|A|iOS)?\//,
  Opera: /\b(OPR|Opera)\//,
  Firefox: /\b(Firefox|FxiOS)\//,
  Chrome: /\b(HeadlessChrome|Chrome|CriOS|Chromium)\//,
  Safari: /\bVersion\/[\d.]+ .*Safari\//,
}
const SYSTEMS: Readonly<Record<string, RegExp>> = {
  iPhone: /\biPhone\b/,
  iPad: /\biPad\b/,
  Android: /\bAndroid\b/,
  Windows: /\bWindows\b/,
  macOS: /\bMac OS X\b|\bMacintosh\b/,
  Linux: /\bLinux\b|\bX11\b/,
}

const find = (names: Readonly<Record<string, RegExp>>, text: string): string | undefined =>
  Object.keys(names).find((name) => names[name]!.test(text))

/** Returns what a `User-Agent` stands for, in words where it is known, otherwise as the program calls itself. */
export function nameOfDevice (userAgent: string, texts: Texts): string {
  const [browser, system] = [find(BROWSERS, userAgent), find(SYSTEMS, userAgent)]
  if (browser && system) return format(texts.deviceOn, { browser, system })
  return browser ?? system ?? (userAgent || texts.unknownDevice)
}
