/**
 * The actor and origin of entries that commands write to the account log. A command has no actor, because it needs no
 * account.
 */
export const terminalContext = {
  actorId: null, userId: null, sessionId: null, keyId: null, address: '', userAgent: 'usher command line',
}
