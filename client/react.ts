'use client'

export { UsherProvider, useUsherClient, type UsherProviderProps } from './react/context.ts'
export { useSession, useUser, type UsedSession } from './react/session.ts'
export {
  useAccount, useApiKeys, useFiles, useIdentities, usePassword, usePasskeys, useProfile, useProviders, useSecondFactor,
  useSessions, useSignInSettings,
  type AccountActions, type ApiKey, type ApiKeyActions, type CreatedApiKey, type FileActions, type FileLink,
  type FileRecord, type Identity, type IdentityActions, type Passkey, type PasskeyActions, type PasswordActions,
  type Profile, type ProfileActions, type Provider, type SecondFactor, type SecondFactorActions, type SessionActions,
  type SessionRecord, type SignInSettings,
} from './react/hooks.ts'
export {
  useInvitations, useMembers, useOrganizations,
  type InvitationsActions, type MembersActions, type OrganizationInvitation, type OrganizationMember,
  type OrganizationsActions, type OwnOrganization,
} from './react/organizations.ts'
export { usePosts, type ListedPost, type PostActions, type PostListOptions } from './react/posts.ts'
export type { Loaded, Used } from './react/resource.ts'
export { needsStepUp, useStepUp, type StepUpActions } from './react/step-up.ts'
export type { UploadOptions } from './react/upload.ts'
export { readFields, readValues, type FieldSchema, type FieldsSchema, type HostField } from './react/fields.ts'
export type { Texts } from './react/texts.ts'
export { SignIn, type SignInProps } from './react/sign-in.ts'
export { SignUp, type SignUpProps } from './react/sign-up.ts'
export { UserButton, type UserButtonProps } from './react/user-button.ts'
export { Account, type AccountProps, type AccountSection } from './react/account.ts'
