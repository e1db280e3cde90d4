/**
 * Returns a password in the form that is hashed: Unicode's composed normalization form (NIST 800-63B 3.1.1.2), so that
 * it does not depend on the keyboard that has typed it.
 */
export const normalizePassword = (password: string): string => password.normalize('NFC')
