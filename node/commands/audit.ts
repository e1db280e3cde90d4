/** What the account log says of a command: whoever may run one has no account. */
export const terminal = { actorId: null, userId: null, sessionId: null, address: '', userAgent: 'usher command line' }
