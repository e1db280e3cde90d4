// Of the settings, which import this file.
interface Printing {
  readonly PRINT_SECRETS?: boolean
  readonly NODE_ENV: string
  readonly place?: { readonly isOnTerminal: boolean }
}

/**
 * Returns whether passwords and mails may be printed. Other output than a terminal usually ends up in a log, which
 * other people read.
 */
export function printsSecrets (
  { place, PRINT_SECRETS = place?.isOnTerminal === true }: Pick<Printing, 'PRINT_SECRETS' | 'place'>
): boolean {
  return PRINT_SECRETS
}

/**
 * Returns whether mails are printed if they are not sent: to a terminal, unless the node runs in production, and
 * elsewhere if `PRINT_SECRETS` is true.
 */
export function printsMails (settings: Printing): boolean {
  return settings.PRINT_SECRETS || (settings.NODE_ENV !== 'production' && printsSecrets(settings))
}
