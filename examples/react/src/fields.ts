// The types of the fields that the host adds to users (`userFields`). The forms read from the service what to show.
declare module 'usher-client' {
  interface Register { userFields: { bio: string } }
}

export {}
