/**
 * The codes with which the server closes a WebSocket. The codes from 4400 are those of graphql-transport-ws, for both
 * protocols.
 */
export const CloseCode = {
  /** The server is stopping. */
  GoingAway: 1001,
  /** The client keeps sending more messages than it may. */
  TooManyMessages: 1008,
  /** The database is unavailable, or the node is overloaded. The client should reconnect after a while. */
  TryAgainLater: 1013,
  /** A message is not JSON, has an unknown type, or lacks its id or its payload. A wrong operation gets an `error`. */
  InvalidMessage: 4400,
  /** An operation was sent before `connection_ack`. */
  Unauthorized: 4401,
  /** The token is invalid or has expired, or its session or membership has ended. */
  Forbidden: 4403,
  /** The client offers none of the protocols. */
  SubprotocolNotAcceptable: 4406,
  /** `connection_init` did not arrive in time. */
  InitialisationTimeout: 4408,
  /** An operation with the same id is running. */
  DuplicateId: 4409,
  /** `connection_init` was sent twice. */
  TooManyInitialisations: 4429,
  /** A message could not be handled because of a defect. */
  InternalServerError: 4500,
} as const
