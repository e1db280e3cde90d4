/**
 * Returns the names of the browser and of the system that a `User-Agent` names, each undefined if unknown. The header
 * may be anything, and only known names are returned. Pages send this function to browsers as it stands, so it uses
 * nothing from outside.
 */
export function describeUserAgent (userAgent: string): { browser: string | undefined, system: string | undefined } {
  // The order matters: Edge also says Chrome, and Chrome also says Safari.
  const browsers = [
    ['Edge', /\bEdg(e|A|iOS)?\//], ['Opera', /\b(OPR|Opera)\//], ['Samsung Internet', /\bSamsungBrowser\//],
    ['Vivaldi', /\bVivaldi\//], ['Firefox', /\b(Firefox|FxiOS)\//], ['Chromium', /\bChromium\//],
    ['Chrome', /\b(HeadlessChrome|Chrome|CriOS)\//], ['Safari', /\bVersion\/[\d.]+ .*Safari\//],
    ['curl', /^curl\//], ['Node.js', /^(node|undici)$/],
  ] as const
  const systems = [
    ['iPhone', /\biPhone\b/], ['iPad', /\biPad\b/], ['Android', /\bAndroid\b/], ['ChromeOS', /\bCrOS\b/],
    ['Windows', /\bWindows\b/], ['macOS', /\bMac OS X\b|\bMacintosh\b/], ['Linux', /\bLinux\b|\bX11\b/],
  ] as const
  const known = userAgent.slice(0, 1000)
  return {
    browser: browsers.find(([, pattern]) => pattern.test(known))?.[0],
    system: systems.find(([, pattern]) => pattern.test(known))?.[0],
  }
}
