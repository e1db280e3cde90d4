// Generated from schema/graphql/schema.graphql by `npm run codegen`; do not edit.
import type { GraphQLResolveInfo, GraphQLScalarType, GraphQLScalarTypeConfig } from 'graphql';
import type { UserRow } from '../../db/tables/index.ts';
import type { AnyPost } from '../../db/posts/drafts.ts';
import type { ChangedPost } from '../../db/posts/followed.ts';
import type { UploadRow } from '../../db/uploads/uploads.ts';
import type { SeenOrganization } from '../../db/organizations/organizations.ts';
import type { ShownMember } from '../../plugins/organizations/organizations.ts';
import type { GraphQLContext } from './context.ts';
export type Maybe<T> = T | null | undefined;
export type InputMaybe<T> = T | null | undefined;
export type Omit<T, K extends keyof T> = Pick<T, Exclude<keyof T, K>>;
export type RequireFields<T, K extends keyof T> = Omit<T, K> & { [P in K]-?: NonNullable<T[P]> };
/** All built-in and custom scalars, mapped to their actual values */
export type Scalars = {
  ID: { input: string; output: string; }
  String: { input: string; output: string; }
  Boolean: { input: boolean; output: boolean; }
  Int: { input: number; output: number; }
  Float: { input: number; output: number; }
  /** An instant in RFC 3339 format, in UTC. */
  DateTime: { input: string; output: Date; }
};

export type Role =
  | 'admin'
  | 'user';

export type UserKind =
  | 'person'
  /** A program, which has no password and acts with API keys. */
  | 'service';

export type User = {
  id: Scalars['ID']['output'];
  name: Scalars['String']['output'];
  /** Null if the reader may not see it. */
  email?: Maybe<Scalars['String']['output']>;
  /** Whether a link that was sent to this address was used. Null like `email`. */
  emailVerified?: Maybe<Scalars['Boolean']['output']>;
  role: Role;
  kind: UserKind;
  /** Whether an admin has disabled the user. Null like `email`. */
  disabled?: Maybe<Scalars['Boolean']['output']>;
  createdAt: Scalars['DateTime']['output'];
  /** The entity tag of the user, which the REST API returns to the same reader. Every change of the user changes it. */
  etag: Scalars['String']['output'];
  /** The user's newest posts. `first` is at most 100. */
  posts: Array<Post>;
  /** A page of the user's uploads, newest first. `first` is at most 100. By default, only the user and admins may list them. */
  uploads: UploadConnection;
  /** The user's organisations, the one joined last first, for the user and admins. `first` is at most 100. */
  organizations: Array<Organization>;
};


export type UserPostsArgs = {
  first?: InputMaybe<Scalars['Int']['input']>;
};


export type UserUploadsArgs = {
  first?: InputMaybe<Scalars['Int']['input']>;
  after?: InputMaybe<Scalars['String']['input']>;
};


export type UserOrganizationsArgs = {
  first?: InputMaybe<Scalars['Int']['input']>;
};

export type Post = {
  id: Scalars['ID']['output'];
  /** The post's position in commit order. Pass it as `after` to get the posts that follow. Of a draft, its place in `drafts`. */
  cursor: Scalars['String']['output'];
  title: Scalars['String']['output'];
  content: Scalars['String']['output'];
  author: User;
  createdAt: Scalars['DateTime']['output'];
  /** The same as `createdAt`; null for a draft, which only its author sees. */
  publishedAt?: Maybe<Scalars['DateTime']['output']>;
  /** When a draft will be published; null if that is not planned, and for a published post. */
  publishAt?: Maybe<Scalars['DateTime']['output']>;
  /** The entity tag of the post. Every change of the post changes it. */
  etag: Scalars['String']['output'];
};

export type Visibility =
  /** Whoever may read uploads may download the file. By default, that is everybody who knows its address. */
  | 'public'
  /** Only the owner, admins and holders of a link may download the file. */
  | 'private';

/** A stored file, without its bytes. */
export type Upload = {
  id: Scalars['ID']['output'];
  /** The address of the bytes. */
  fileUrl: Scalars['String']['output'];
  userId: Scalars['ID']['output'];
  filename: Scalars['String']['output'];
  mediaType: Scalars['String']['output'];
  /** Bytes. */
  size: Scalars['Float']['output'];
  /** The hash of the bytes, hexadecimal. */
  sha256: Scalars['String']['output'];
  description: Scalars['String']['output'];
  visibility: Visibility;
  createdAt: Scalars['DateTime']['output'];
  /** The entity tag of the record. Every change of the record changes it. */
  etag: Scalars['String']['output'];
};

export type Organization = {
  id: Scalars['ID']['output'];
  name: Scalars['String']['output'];
  slug: Scalars['String']['output'];
  createdAt: Scalars['DateTime']['output'];
  /** The role in it of the user whose organisations these are, or of the reader. Null for an admin who is no member. */
  role?: Maybe<Scalars['String']['output']>;
  /** A page of its members, in the order in which their accounts were created. `first` is at most 100, `q` is the prefix of a word of the name. */
  members: MembershipConnection;
};


export type OrganizationMembersArgs = {
  first?: InputMaybe<Scalars['Int']['input']>;
  after?: InputMaybe<Scalars['String']['input']>;
  role?: InputMaybe<Scalars['String']['input']>;
  q?: InputMaybe<Scalars['String']['input']>;
};

/** That a user belongs to an organisation, in a role. Another role is another membership. */
export type Membership = {
  id: Scalars['ID']['output'];
  role: Scalars['String']['output'];
  createdAt: Scalars['DateTime']['output'];
  user: User;
};

export type PageInfo = {
  hasNextPage: Scalars['Boolean']['output'];
  hasPreviousPage: Scalars['Boolean']['output'];
  startCursor?: Maybe<Scalars['String']['output']>;
  endCursor?: Maybe<Scalars['String']['output']>;
};

export type UserEdge = {
  cursor: Scalars['String']['output'];
  node: User;
};

export type UserConnection = {
  edges: Array<UserEdge>;
  nodes: Array<User>;
  pageInfo: PageInfo;
};

export type PostEdge = {
  cursor: Scalars['String']['output'];
  node: Post;
};

export type PostConnection = {
  edges: Array<PostEdge>;
  nodes: Array<Post>;
  pageInfo: PageInfo;
};

/** A post was created. */
export type PostCreated = {
  cursor: Scalars['String']['output'];
  post: Post;
};

/** The title or the content of a post has changed. Of changes in quick succession there may be one event, with the last state. */
export type PostUpdated = {
  cursor: Scalars['String']['output'];
  post: Post;
};

/** A post was deleted. */
export type PostDeleted = {
  cursor: Scalars['String']['output'];
  id: Scalars['ID']['output'];
};

/** What has happened to a post, with the cursor after which a subscription goes on. The post is as it is now. */
export type PostChange = PostCreated | PostUpdated | PostDeleted;

export type UploadEdge = {
  cursor: Scalars['String']['output'];
  node: Upload;
};

export type UploadConnection = {
  edges: Array<UploadEdge>;
  nodes: Array<Upload>;
  pageInfo: PageInfo;
};

export type MembershipEdge = {
  cursor: Scalars['String']['output'];
  node: Membership;
};

export type MembershipConnection = {
  edges: Array<MembershipEdge>;
  nodes: Array<Membership>;
  pageInfo: PageInfo;
};

export type Query = {
  /** Returns a user. An unknown id is an error. */
  user?: Maybe<User>;
  /** Returns a page of users, newest first. `first` is at most 100. `q` is the prefix of a word, `kind` is person or service, `sort` one of createdAt, name and email, with - for descending. `disabled`, `emailVerified` and `secondFactor` are for admins. */
  users: UserConnection;
  /** Returns a post, or null if it does not exist. */
  post?: Maybe<Post>;
  /**
   * Returns a page of posts, newest first. `first` is at most 100. With `q`, only posts that have all these words in their title or
   * content, the last of which may be the beginning of a word. Such a page may have fewer posts, or none, although
   * `hasNextPage` is true: `endCursor` leads on.
   */
  posts: PostConnection;
  /** Returns a page of the drafts of the user to whom the bearer token belongs, newest first. `first` is at most 100. */
  drafts: PostConnection;
  /** Returns the record of an upload, or null if it does not exist, or is private and the reader may not read it. */
  upload?: Maybe<Upload>;
  /** Returns an organisation. One that does not exist, and one of which the reader is no member, is an error. */
  organization?: Maybe<Organization>;
  /** Returns the user to whom the bearer token belongs, or null if the request has no token. */
  me?: Maybe<User>;
};


export type QueryUserArgs = {
  id: Scalars['ID']['input'];
};


export type QueryUsersArgs = {
  role?: InputMaybe<Scalars['String']['input']>;
  email?: InputMaybe<Scalars['String']['input']>;
  q?: InputMaybe<Scalars['String']['input']>;
  kind?: InputMaybe<Scalars['String']['input']>;
  disabled?: InputMaybe<Scalars['Boolean']['input']>;
  emailVerified?: InputMaybe<Scalars['Boolean']['input']>;
  secondFactor?: InputMaybe<Scalars['Boolean']['input']>;
  sort?: InputMaybe<Scalars['String']['input']>;
  first?: InputMaybe<Scalars['Int']['input']>;
  after?: InputMaybe<Scalars['String']['input']>;
};


export type QueryPostArgs = {
  id: Scalars['ID']['input'];
};


export type QueryPostsArgs = {
  authorId?: InputMaybe<Scalars['ID']['input']>;
  q?: InputMaybe<Scalars['String']['input']>;
  first?: InputMaybe<Scalars['Int']['input']>;
  after?: InputMaybe<Scalars['String']['input']>;
};


export type QueryDraftsArgs = {
  first?: InputMaybe<Scalars['Int']['input']>;
  after?: InputMaybe<Scalars['String']['input']>;
};


export type QueryUploadArgs = {
  id: Scalars['ID']['input'];
};


export type QueryOrganizationArgs = {
  id: Scalars['ID']['input'];
};

/**
 * `title` has 1 to 200 characters, `content` up to 64 KiB. `authorId` is by default the user to whom the bearer token belongs.
 * Only an admin may name another user. With null, `publishedAt` makes a draft; with a time in the future, one that is published then.
 */
export type CreatePostInput = {
  title: Scalars['String']['input'];
  content: Scalars['String']['input'];
  authorId?: InputMaybe<Scalars['ID']['input']>;
  publishedAt?: InputMaybe<Scalars['DateTime']['input']>;
};

/**
 * A field that is absent keeps its value, and so do `title` and `content` that are null. `publishedAt` publishes a draft: at once, unless the
 * time is in the future. With null, no time is planned.
 */
export type UpdatePostInput = {
  title?: InputMaybe<Scalars['String']['input']>;
  content?: InputMaybe<Scalars['String']['input']>;
  publishedAt?: InputMaybe<Scalars['DateTime']['input']>;
};

/** A field that is absent or null keeps its value. */
export type UpdateUploadInput = {
  description?: InputMaybe<Scalars['String']['input']>;
  filename?: InputMaybe<Scalars['String']['input']>;
  visibility?: InputMaybe<Visibility>;
};

/**
 * Every mutation requires a bearer token. `ifMatch` is the `etag` of the post or upload, several of them, or `*`, as in the HTTP field
 * `If-Match`: if the record has changed since, it stays as it is, and the error has the code `PRECONDITION_FAILED`.
 */
export type Mutation = {
  createPost: Post;
  updatePost: Post;
  deletePost: Scalars['ID']['output'];
  updateUpload: Upload;
  /** Deletes an upload and its file. */
  deleteUpload: Scalars['ID']['output'];
};


/**
 * Every mutation requires a bearer token. `ifMatch` is the `etag` of the post or upload, several of them, or `*`, as in the HTTP field
 * `If-Match`: if the record has changed since, it stays as it is, and the error has the code `PRECONDITION_FAILED`.
 */
export type MutationCreatePostArgs = {
  input: CreatePostInput;
};


/**
 * Every mutation requires a bearer token. `ifMatch` is the `etag` of the post or upload, several of them, or `*`, as in the HTTP field
 * `If-Match`: if the record has changed since, it stays as it is, and the error has the code `PRECONDITION_FAILED`.
 */
export type MutationUpdatePostArgs = {
  id: Scalars['ID']['input'];
  input: UpdatePostInput;
  ifMatch?: InputMaybe<Scalars['String']['input']>;
};


/**
 * Every mutation requires a bearer token. `ifMatch` is the `etag` of the post or upload, several of them, or `*`, as in the HTTP field
 * `If-Match`: if the record has changed since, it stays as it is, and the error has the code `PRECONDITION_FAILED`.
 */
export type MutationDeletePostArgs = {
  id: Scalars['ID']['input'];
  ifMatch?: InputMaybe<Scalars['String']['input']>;
};


/**
 * Every mutation requires a bearer token. `ifMatch` is the `etag` of the post or upload, several of them, or `*`, as in the HTTP field
 * `If-Match`: if the record has changed since, it stays as it is, and the error has the code `PRECONDITION_FAILED`.
 */
export type MutationUpdateUploadArgs = {
  id: Scalars['ID']['input'];
  input: UpdateUploadInput;
  ifMatch?: InputMaybe<Scalars['String']['input']>;
};


/**
 * Every mutation requires a bearer token. `ifMatch` is the `etag` of the post or upload, several of them, or `*`, as in the HTTP field
 * `If-Match`: if the record has changed since, it stays as it is, and the error has the code `PRECONDITION_FAILED`.
 */
export type MutationDeleteUploadArgs = {
  id: Scalars['ID']['input'];
  ifMatch?: InputMaybe<Scalars['String']['input']>;
};

export type Subscription = {
  /**
   * Delivers every new post, or every new post of one author, exactly once and in commit order. With `after`, the cursor of
   * a post, it starts with the posts that follow that one. Reconnecting clients receive what they missed. Clients that
   * have read the newest page of `posts` continue from its `startCursor`.
   */
  postCreated: Post;
  /**
   * Delivers new posts, changes and deletions of posts, or of the posts of one author, each once and in commit order. With
   * `after`, the cursor of one of these events or of a post, it starts with what follows. Whoever was away longer gets the
   * last state of a post rather than each one, and no more than the deletion of one that is gone. Deletions are known for 30
   * days. A deletion may be of a post that was created after `after`.
   */
  postChanged: PostChange;
};


export type SubscriptionPostCreatedArgs = {
  authorId?: InputMaybe<Scalars['ID']['input']>;
  after?: InputMaybe<Scalars['String']['input']>;
};


export type SubscriptionPostChangedArgs = {
  authorId?: InputMaybe<Scalars['ID']['input']>;
  after?: InputMaybe<Scalars['String']['input']>;
};



export type ResolverTypeWrapper<T> = Promise<T> | T;


export type ResolverWithResolve<TResult, TParent, TContext, TArgs> = {
  resolve: ResolverFn<TResult, TParent, TContext, TArgs>;
};
export type Resolver<TResult, TParent = Record<PropertyKey, never>, TContext = Record<PropertyKey, never>, TArgs = Record<PropertyKey, never>> = ResolverFn<TResult, TParent, TContext, TArgs> | ResolverWithResolve<TResult, TParent, TContext, TArgs>;

export type ResolverFn<TResult, TParent, TContext, TArgs> = (
  parent: TParent,
  args: TArgs,
  context: TContext,
  info: GraphQLResolveInfo
) => Promise<TResult> | TResult;

export type SubscriptionSubscribeFn<TResult, TParent, TContext, TArgs> = (
  parent: TParent,
  args: TArgs,
  context: TContext,
  info: GraphQLResolveInfo
) => AsyncIterable<TResult> | Promise<AsyncIterable<TResult>>;

export type SubscriptionResolveFn<TResult, TParent, TContext, TArgs> = (
  parent: TParent,
  args: TArgs,
  context: TContext,
  info: GraphQLResolveInfo
) => TResult | Promise<TResult>;

export interface SubscriptionSubscriberObject<TResult, TKey extends string, TParent, TContext, TArgs> {
  subscribe: SubscriptionSubscribeFn<{ [key in TKey]: TResult }, TParent, TContext, TArgs>;
  resolve?: SubscriptionResolveFn<TResult, { [key in TKey]: TResult }, TContext, TArgs>;
}

export interface SubscriptionResolverObject<TResult, TParent, TContext, TArgs> {
  subscribe: SubscriptionSubscribeFn<any, TParent, TContext, TArgs>;
  resolve: SubscriptionResolveFn<TResult, any, TContext, TArgs>;
}

export type SubscriptionObject<TResult, TKey extends string, TParent, TContext, TArgs> =
  | SubscriptionSubscriberObject<TResult, TKey, TParent, TContext, TArgs>
  | SubscriptionResolverObject<TResult, TParent, TContext, TArgs>;

export type SubscriptionResolver<TResult, TKey extends string, TParent = Record<PropertyKey, never>, TContext = Record<PropertyKey, never>, TArgs = Record<PropertyKey, never>> =
  | ((...args: any[]) => SubscriptionObject<TResult, TKey, TParent, TContext, TArgs>)
  | SubscriptionObject<TResult, TKey, TParent, TContext, TArgs>;

export type TypeResolveFn<TTypes, TParent = Record<PropertyKey, never>, TContext = Record<PropertyKey, never>> = (
  parent: TParent,
  context: TContext,
  info: GraphQLResolveInfo
) => Maybe<TTypes> | Promise<Maybe<TTypes>>;

export type IsTypeOfResolverFn<T = Record<PropertyKey, never>, TContext = Record<PropertyKey, never>> = (obj: T, context: TContext, info: GraphQLResolveInfo) => boolean | Promise<boolean>;

export type NextResolverFn<T> = () => Promise<T>;

export type DirectiveResolverFn<TResult = Record<PropertyKey, never>, TParent = Record<PropertyKey, never>, TContext = Record<PropertyKey, never>, TArgs = Record<PropertyKey, never>> = (
  next: NextResolverFn<TResult>,
  parent: TParent,
  args: TArgs,
  context: TContext,
  info: GraphQLResolveInfo
) => TResult | Promise<TResult>;



/** Mapping of union types */
export type ResolversUnionTypes<_RefType extends Record<string, unknown>> = {
  PostChange:
    | ( ChangedPost )
    | ( ChangedPost )
    | ( ChangedPost )
  ;
};


/** Mapping between all available schema types and the resolvers types */
export type ResolversTypes = {
  DateTime: ResolverTypeWrapper<Scalars['DateTime']['output']>;
  Role: Role;
  UserKind: UserKind;
  User: ResolverTypeWrapper<UserRow>;
  ID: ResolverTypeWrapper<Scalars['ID']['output']>;
  String: ResolverTypeWrapper<Scalars['String']['output']>;
  Boolean: ResolverTypeWrapper<Scalars['Boolean']['output']>;
  Int: ResolverTypeWrapper<Scalars['Int']['output']>;
  Post: ResolverTypeWrapper<AnyPost>;
  Visibility: Visibility;
  Upload: ResolverTypeWrapper<UploadRow>;
  Float: ResolverTypeWrapper<Scalars['Float']['output']>;
  Organization: ResolverTypeWrapper<SeenOrganization>;
  Membership: ResolverTypeWrapper<ShownMember>;
  PageInfo: ResolverTypeWrapper<PageInfo>;
  UserEdge: ResolverTypeWrapper<Omit<UserEdge, 'node'> & { node: ResolversTypes['User'] }>;
  UserConnection: ResolverTypeWrapper<Omit<UserConnection, 'edges' | 'nodes'> & { edges: Array<ResolversTypes['UserEdge']>, nodes: Array<ResolversTypes['User']> }>;
  PostEdge: ResolverTypeWrapper<Omit<PostEdge, 'node'> & { node: ResolversTypes['Post'] }>;
  PostConnection: ResolverTypeWrapper<Omit<PostConnection, 'edges' | 'nodes'> & { edges: Array<ResolversTypes['PostEdge']>, nodes: Array<ResolversTypes['Post']> }>;
  PostCreated: ResolverTypeWrapper<ChangedPost>;
  PostUpdated: ResolverTypeWrapper<ChangedPost>;
  PostDeleted: ResolverTypeWrapper<ChangedPost>;
  PostChange: ResolverTypeWrapper<ResolversUnionTypes<ResolversTypes>['PostChange']>;
  UploadEdge: ResolverTypeWrapper<Omit<UploadEdge, 'node'> & { node: ResolversTypes['Upload'] }>;
  UploadConnection: ResolverTypeWrapper<Omit<UploadConnection, 'edges' | 'nodes'> & { edges: Array<ResolversTypes['UploadEdge']>, nodes: Array<ResolversTypes['Upload']> }>;
  MembershipEdge: ResolverTypeWrapper<Omit<MembershipEdge, 'node'> & { node: ResolversTypes['Membership'] }>;
  MembershipConnection: ResolverTypeWrapper<Omit<MembershipConnection, 'edges' | 'nodes'> & { edges: Array<ResolversTypes['MembershipEdge']>, nodes: Array<ResolversTypes['Membership']> }>;
  Query: ResolverTypeWrapper<Record<PropertyKey, never>>;
  CreatePostInput: CreatePostInput;
  UpdatePostInput: UpdatePostInput;
  UpdateUploadInput: UpdateUploadInput;
  Mutation: ResolverTypeWrapper<Record<PropertyKey, never>>;
  Subscription: ResolverTypeWrapper<Record<PropertyKey, never>>;
};

/** Mapping between all available schema types and the resolvers parents */
export type ResolversParentTypes = {
  DateTime: Scalars['DateTime']['output'];
  User: UserRow;
  ID: Scalars['ID']['output'];
  String: Scalars['String']['output'];
  Boolean: Scalars['Boolean']['output'];
  Int: Scalars['Int']['output'];
  Post: AnyPost;
  Upload: UploadRow;
  Float: Scalars['Float']['output'];
  Organization: SeenOrganization;
  Membership: ShownMember;
  PageInfo: PageInfo;
  UserEdge: Omit<UserEdge, 'node'> & { node: ResolversParentTypes['User'] };
  UserConnection: Omit<UserConnection, 'edges' | 'nodes'> & { edges: Array<ResolversParentTypes['UserEdge']>, nodes: Array<ResolversParentTypes['User']> };
  PostEdge: Omit<PostEdge, 'node'> & { node: ResolversParentTypes['Post'] };
  PostConnection: Omit<PostConnection, 'edges' | 'nodes'> & { edges: Array<ResolversParentTypes['PostEdge']>, nodes: Array<ResolversParentTypes['Post']> };
  PostCreated: ChangedPost;
  PostUpdated: ChangedPost;
  PostDeleted: ChangedPost;
  PostChange: ResolversUnionTypes<ResolversParentTypes>['PostChange'];
  UploadEdge: Omit<UploadEdge, 'node'> & { node: ResolversParentTypes['Upload'] };
  UploadConnection: Omit<UploadConnection, 'edges' | 'nodes'> & { edges: Array<ResolversParentTypes['UploadEdge']>, nodes: Array<ResolversParentTypes['Upload']> };
  MembershipEdge: Omit<MembershipEdge, 'node'> & { node: ResolversParentTypes['Membership'] };
  MembershipConnection: Omit<MembershipConnection, 'edges' | 'nodes'> & { edges: Array<ResolversParentTypes['MembershipEdge']>, nodes: Array<ResolversParentTypes['Membership']> };
  Query: Record<PropertyKey, never>;
  CreatePostInput: CreatePostInput;
  UpdatePostInput: UpdatePostInput;
  UpdateUploadInput: UpdateUploadInput;
  Mutation: Record<PropertyKey, never>;
  Subscription: Record<PropertyKey, never>;
};

export interface DateTimeScalarConfig extends GraphQLScalarTypeConfig<ResolversTypes['DateTime'], any> {
  name: 'DateTime';
}

export type UserResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['User'] = ResolversParentTypes['User']> = {
  id?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
  name?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  email?: Resolver<Maybe<ResolversTypes['String']>, ParentType, ContextType>;
  emailVerified?: Resolver<Maybe<ResolversTypes['Boolean']>, ParentType, ContextType>;
  role?: Resolver<ResolversTypes['Role'], ParentType, ContextType>;
  kind?: Resolver<ResolversTypes['UserKind'], ParentType, ContextType>;
  disabled?: Resolver<Maybe<ResolversTypes['Boolean']>, ParentType, ContextType>;
  createdAt?: Resolver<ResolversTypes['DateTime'], ParentType, ContextType>;
  etag?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  posts?: Resolver<Array<ResolversTypes['Post']>, ParentType, ContextType, RequireFields<UserPostsArgs, 'first'>>;
  uploads?: Resolver<ResolversTypes['UploadConnection'], ParentType, ContextType, RequireFields<UserUploadsArgs, 'first'>>;
  organizations?: Resolver<Array<ResolversTypes['Organization']>, ParentType, ContextType, RequireFields<UserOrganizationsArgs, 'first'>>;
};

export type PostResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['Post'] = ResolversParentTypes['Post']> = {
  id?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
  cursor?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  title?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  content?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  author?: Resolver<ResolversTypes['User'], ParentType, ContextType>;
  createdAt?: Resolver<ResolversTypes['DateTime'], ParentType, ContextType>;
  publishedAt?: Resolver<Maybe<ResolversTypes['DateTime']>, ParentType, ContextType>;
  publishAt?: Resolver<Maybe<ResolversTypes['DateTime']>, ParentType, ContextType>;
  etag?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
};

export type UploadResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['Upload'] = ResolversParentTypes['Upload']> = {
  id?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
  fileUrl?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  userId?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
  filename?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  mediaType?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  size?: Resolver<ResolversTypes['Float'], ParentType, ContextType>;
  sha256?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  description?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  visibility?: Resolver<ResolversTypes['Visibility'], ParentType, ContextType>;
  createdAt?: Resolver<ResolversTypes['DateTime'], ParentType, ContextType>;
  etag?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
};

export type OrganizationResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['Organization'] = ResolversParentTypes['Organization']> = {
  id?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
  name?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  slug?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  createdAt?: Resolver<ResolversTypes['DateTime'], ParentType, ContextType>;
  role?: Resolver<Maybe<ResolversTypes['String']>, ParentType, ContextType>;
  members?: Resolver<ResolversTypes['MembershipConnection'], ParentType, ContextType, RequireFields<OrganizationMembersArgs, 'first'>>;
};

export type MembershipResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['Membership'] = ResolversParentTypes['Membership']> = {
  id?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
  role?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  createdAt?: Resolver<ResolversTypes['DateTime'], ParentType, ContextType>;
  user?: Resolver<ResolversTypes['User'], ParentType, ContextType>;
};

export type PageInfoResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['PageInfo'] = ResolversParentTypes['PageInfo']> = {
  hasNextPage?: Resolver<ResolversTypes['Boolean'], ParentType, ContextType>;
  hasPreviousPage?: Resolver<ResolversTypes['Boolean'], ParentType, ContextType>;
  startCursor?: Resolver<Maybe<ResolversTypes['String']>, ParentType, ContextType>;
  endCursor?: Resolver<Maybe<ResolversTypes['String']>, ParentType, ContextType>;
};

export type UserEdgeResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['UserEdge'] = ResolversParentTypes['UserEdge']> = {
  cursor?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  node?: Resolver<ResolversTypes['User'], ParentType, ContextType>;
};

export type UserConnectionResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['UserConnection'] = ResolversParentTypes['UserConnection']> = {
  edges?: Resolver<Array<ResolversTypes['UserEdge']>, ParentType, ContextType>;
  nodes?: Resolver<Array<ResolversTypes['User']>, ParentType, ContextType>;
  pageInfo?: Resolver<ResolversTypes['PageInfo'], ParentType, ContextType>;
};

export type PostEdgeResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['PostEdge'] = ResolversParentTypes['PostEdge']> = {
  cursor?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  node?: Resolver<ResolversTypes['Post'], ParentType, ContextType>;
};

export type PostConnectionResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['PostConnection'] = ResolversParentTypes['PostConnection']> = {
  edges?: Resolver<Array<ResolversTypes['PostEdge']>, ParentType, ContextType>;
  nodes?: Resolver<Array<ResolversTypes['Post']>, ParentType, ContextType>;
  pageInfo?: Resolver<ResolversTypes['PageInfo'], ParentType, ContextType>;
};

export type PostCreatedResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['PostCreated'] = ResolversParentTypes['PostCreated']> = {
  cursor?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  post?: Resolver<ResolversTypes['Post'], ParentType, ContextType>;
  __isTypeOf?: IsTypeOfResolverFn<ParentType, ContextType>;
};

export type PostUpdatedResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['PostUpdated'] = ResolversParentTypes['PostUpdated']> = {
  cursor?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  post?: Resolver<ResolversTypes['Post'], ParentType, ContextType>;
  __isTypeOf?: IsTypeOfResolverFn<ParentType, ContextType>;
};

export type PostDeletedResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['PostDeleted'] = ResolversParentTypes['PostDeleted']> = {
  cursor?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  id?: Resolver<ResolversTypes['ID'], ParentType, ContextType>;
  __isTypeOf?: IsTypeOfResolverFn<ParentType, ContextType>;
};

export type PostChangeResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['PostChange'] = ResolversParentTypes['PostChange']> = {
  __resolveType: TypeResolveFn<'PostCreated' | 'PostUpdated' | 'PostDeleted', ParentType, ContextType>;
};

export type UploadEdgeResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['UploadEdge'] = ResolversParentTypes['UploadEdge']> = {
  cursor?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  node?: Resolver<ResolversTypes['Upload'], ParentType, ContextType>;
};

export type UploadConnectionResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['UploadConnection'] = ResolversParentTypes['UploadConnection']> = {
  edges?: Resolver<Array<ResolversTypes['UploadEdge']>, ParentType, ContextType>;
  nodes?: Resolver<Array<ResolversTypes['Upload']>, ParentType, ContextType>;
  pageInfo?: Resolver<ResolversTypes['PageInfo'], ParentType, ContextType>;
};

export type MembershipEdgeResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['MembershipEdge'] = ResolversParentTypes['MembershipEdge']> = {
  cursor?: Resolver<ResolversTypes['String'], ParentType, ContextType>;
  node?: Resolver<ResolversTypes['Membership'], ParentType, ContextType>;
};

export type MembershipConnectionResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['MembershipConnection'] = ResolversParentTypes['MembershipConnection']> = {
  edges?: Resolver<Array<ResolversTypes['MembershipEdge']>, ParentType, ContextType>;
  nodes?: Resolver<Array<ResolversTypes['Membership']>, ParentType, ContextType>;
  pageInfo?: Resolver<ResolversTypes['PageInfo'], ParentType, ContextType>;
};

export type QueryResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['Query'] = ResolversParentTypes['Query']> = {
  user?: Resolver<Maybe<ResolversTypes['User']>, ParentType, ContextType, RequireFields<QueryUserArgs, 'id'>>;
  users?: Resolver<ResolversTypes['UserConnection'], ParentType, ContextType, RequireFields<QueryUsersArgs, 'first'>>;
  post?: Resolver<Maybe<ResolversTypes['Post']>, ParentType, ContextType, RequireFields<QueryPostArgs, 'id'>>;
  posts?: Resolver<ResolversTypes['PostConnection'], ParentType, ContextType, RequireFields<QueryPostsArgs, 'first'>>;
  drafts?: Resolver<ResolversTypes['PostConnection'], ParentType, ContextType, RequireFields<QueryDraftsArgs, 'first'>>;
  upload?: Resolver<Maybe<ResolversTypes['Upload']>, ParentType, ContextType, RequireFields<QueryUploadArgs, 'id'>>;
  organization?: Resolver<Maybe<ResolversTypes['Organization']>, ParentType, ContextType, RequireFields<QueryOrganizationArgs, 'id'>>;
  me?: Resolver<Maybe<ResolversTypes['User']>, ParentType, ContextType>;
};

export type MutationResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['Mutation'] = ResolversParentTypes['Mutation']> = {
  createPost?: Resolver<ResolversTypes['Post'], ParentType, ContextType, RequireFields<MutationCreatePostArgs, 'input'>>;
  updatePost?: Resolver<ResolversTypes['Post'], ParentType, ContextType, RequireFields<MutationUpdatePostArgs, 'id' | 'input'>>;
  deletePost?: Resolver<ResolversTypes['ID'], ParentType, ContextType, RequireFields<MutationDeletePostArgs, 'id'>>;
  updateUpload?: Resolver<ResolversTypes['Upload'], ParentType, ContextType, RequireFields<MutationUpdateUploadArgs, 'id' | 'input'>>;
  deleteUpload?: Resolver<ResolversTypes['ID'], ParentType, ContextType, RequireFields<MutationDeleteUploadArgs, 'id'>>;
};

export type SubscriptionResolvers<ContextType = GraphQLContext, ParentType extends ResolversParentTypes['Subscription'] = ResolversParentTypes['Subscription']> = {
  postCreated?: SubscriptionResolver<ResolversTypes['Post'], "postCreated", ParentType, ContextType, Partial<SubscriptionPostCreatedArgs>>;
  postChanged?: SubscriptionResolver<ResolversTypes['PostChange'], "postChanged", ParentType, ContextType, Partial<SubscriptionPostChangedArgs>>;
};

export type Resolvers<ContextType = GraphQLContext> = {
  DateTime?: GraphQLScalarType;
  User?: UserResolvers<ContextType>;
  Post?: PostResolvers<ContextType>;
  Upload?: UploadResolvers<ContextType>;
  Organization?: OrganizationResolvers<ContextType>;
  Membership?: MembershipResolvers<ContextType>;
  PageInfo?: PageInfoResolvers<ContextType>;
  UserEdge?: UserEdgeResolvers<ContextType>;
  UserConnection?: UserConnectionResolvers<ContextType>;
  PostEdge?: PostEdgeResolvers<ContextType>;
  PostConnection?: PostConnectionResolvers<ContextType>;
  PostCreated?: PostCreatedResolvers<ContextType>;
  PostUpdated?: PostUpdatedResolvers<ContextType>;
  PostDeleted?: PostDeletedResolvers<ContextType>;
  PostChange?: PostChangeResolvers<ContextType>;
  UploadEdge?: UploadEdgeResolvers<ContextType>;
  UploadConnection?: UploadConnectionResolvers<ContextType>;
  MembershipEdge?: MembershipEdgeResolvers<ContextType>;
  MembershipConnection?: MembershipConnectionResolvers<ContextType>;
  Query?: QueryResolvers<ContextType>;
  Mutation?: MutationResolvers<ContextType>;
  Subscription?: SubscriptionResolvers<ContextType>;
};

