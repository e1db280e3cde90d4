// The fields that the host adds to users (`userFields`), for the forms and for the types.
export const fields = {
  properties: {
    bio: { type: 'string', title: 'About you', maxLength: 500, 'x-write': 'owner' },
  },
} as const

declare module 'usher-client' {
  interface Register { userFields: { bio: string } }
}
