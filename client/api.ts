// Generated from the OpenAPI document by `npm run codegen`; do not edit.
import type { ChangedFieldValues, Role, ShownFieldValues } from "./register.ts";
export interface paths {
    "/health/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Check whether the node is running */
        get: operations["checkLiveness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health/ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Check whether the node can reach its database */
        get: operations["checkReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/jwks.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the public keys that verify access tokens */
        get: operations["listPublicKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/.well-known/webauthn": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the origins whose pages may use passkeys */
        get: operations["listPasskeyOrigins"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Log in */
        post: operations["logIn"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/refresh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Get a new access token, for an organisation or for none, and a new session cookie */
        post: operations["refreshSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Log out: end the session on every node */
        post: operations["logOut"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/protected": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the authenticated user */
        get: operations["getCurrentUser"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the sessions of the authenticated user, newest first */
        get: operations["listSessions"];
        put?: never;
        post?: never;
        /** End all sessions of the authenticated user except the current one */
        delete: operations["endOtherSessions"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** End a session on every node */
        delete: operations["endSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/{id}/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the sessions of a user, newest first */
        get: operations["listUserSessions"];
        put?: never;
        post?: never;
        /** End all sessions of a user, the current one included */
        delete: operations["endUserSessions"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/{id}/sessions/{sessionId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** End a session of a user on every node */
        delete: operations["endUserSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Get another access token of the session, for an organisation or for none */
        post: operations["createToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/passkeys/options": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Get the options with which a browser creates a passkey */
        post: operations["getPasskeyCreationOptions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/passkeys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the passkeys of the authenticated user, newest first */
        get: operations["listPasskeys"];
        put?: never;
        /** Add the passkey that a browser has created */
        post: operations["addPasskey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/passkeys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove a passkey */
        delete: operations["removePasskey"];
        options?: never;
        head?: never;
        /** Rename a passkey */
        patch: operations["renamePasskey"];
        trace?: never;
    };
    "/api/users/{id}/passkeys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the passkeys of a user, newest first */
        get: operations["listUserPasskeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/{id}/passkeys/{passkeyId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove a passkey of a user, and end all sessions of that user */
        delete: operations["removeUserPasskey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/login/passkey/options": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Get the options with which a browser logs in by passkey */
        post: operations["getPasskeyLoginOptions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/login/passkey": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Log in by passkey */
        post: operations["logInByPasskey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/step-up/options": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Get the options with which a browser authenticates the user of the session once more by passkey */
        post: operations["getStepUpOptions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the API keys of the authenticated user, newest first */
        get: operations["listApiKeys"];
        put?: never;
        /** Create an API key of the authenticated user */
        post: operations["createApiKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/keys/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read an API key of the authenticated user */
        get: operations["getApiKey"];
        put?: never;
        post?: never;
        /** Delete an API key, which every node then rejects */
        delete: operations["deleteApiKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/{id}/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the API keys of a user, newest first */
        get: operations["listUserApiKeys"];
        put?: never;
        /** Create an API key of a service user */
        post: operations["createUserApiKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/{id}/keys/{keyId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read an API key of a user */
        get: operations["getUserApiKey"];
        put?: never;
        post?: never;
        /** Delete an API key of a user, which every node then rejects */
        delete: operations["deleteUserApiKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Change the password and end every other session */
        put: operations["changePassword"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/password-reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Request an e-mail with a link to set a password */
        post: operations["requestPasswordReset"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/password-reset/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Check whether the token of a link is valid, without using it, and what the reset removes */
        post: operations["checkPasswordReset"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/password-reset/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Set a password with the token of the link and end every session of the user */
        post: operations["resetPassword"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/{id}/invitation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Invite a user who has no password: send a link to set one */
        post: operations["inviteUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the providers with which users sign in */
        get: operations["listProviders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/providers/{id}/start": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Send the browser to a provider, to log in there */
        get: operations["startProviderLogin"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/providers/{id}/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Take what a provider says about a login, and send the browser to where it began */
        get: operations["completeProviderLogin"];
        put?: never;
        /** Take the same from a provider that sends a form, and send the browser to GET with it */
        post: operations["receiveProviderForm"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/providers/{id}/link": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Get the address at a provider that links an identity to the account of the authenticated user */
        post: operations["startProviderLink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/providers/{id}/join": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Get the address at a provider that accepts an invitation to an organisation with a new account */
        post: operations["startProviderJoin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/providers/{id}/step-up": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Get the address at a provider that authenticates the user of the session once more */
        post: operations["startProviderStepUp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/identities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the identities of the authenticated user at providers, newest first */
        get: operations["listIdentities"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/identities/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove an identity at a provider */
        delete: operations["removeIdentity"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/{id}/identities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the identities of a user at providers, newest first */
        get: operations["listUserIdentities"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/{id}/identities/{identityId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove an identity of a user at a provider, and end all sessions of that user */
        delete: operations["removeUserIdentity"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/providers/{id}/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** End the sessions that a provider has ended (OpenID Connect Back-Channel Logout) */
        post: operations["receiveProviderLogout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/login/second-factor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Complete a login with the second factor */
        post: operations["completeLogin"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/step-up": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Confirm that it is you: authenticate the user of the session once more */
        post: operations["stepUp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/second-factor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read which second factors the authenticated user has */
        get: operations["getSecondFactors"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/totp": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Create a secret for an authenticator app, which has no effect until it is confirmed */
        post: operations["createTotp"];
        /** Remove the authenticator app and the recovery codes */
        delete: operations["removeTotp"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/totp/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Activate the authenticator app with its first code, and end every other session */
        post: operations["confirmTotp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/recovery-codes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Create new recovery codes, which make the earlier ones void */
        post: operations["createRecoveryCodes"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/sign-up": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Sign up: request an e-mail with a link that creates the user */
        post: operations["signUp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/sign-up/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Check whether the token of the link is valid, without using it, whose it is, and whether it needs a password */
        post: operations["checkSignUp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/sign-up/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Create the user of a sign-up with the token of the link */
        post: operations["confirmSignUp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/login/mail": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Request an e-mail with a link and a code to log in */
        post: operations["requestLoginMail"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/login/mail/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Check whether the token of the link is valid, without using it, and which account it logs in to */
        post: operations["checkLoginMail"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/login/mail/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Log in with the token of the link, or with the code */
        post: operations["logInByMail"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/step-up/mail": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Request an e-mail with a code to confirm that it is you */
        post: operations["requestStepUpMail"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read what a login and a sign-up consist of, for pages of one's own */
        get: operations["readSignInSettings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/{id}/email-verification": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a link to verify the address of a user */
        post: operations["requestEmailVerification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/email-verification/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Check whether the token of a link to verify an address is valid, without using it, and what it needs */
        post: operations["checkEmailVerification"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/email-verification/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Verify an address with the token of the link, or change it to that address */
        post: operations["verifyEmail"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/undo/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Check whether the token of a link to undo a change is valid, without using it */
        post: operations["checkUndo"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/undo": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Undo a change of the address or the password with the token of the link, and end every session of the user */
        post: operations["undoChange"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List users, by default newest first
         * @description With `Prefer: handling=strict`, unknown parameters are errors. A page has an `ETag`; with `If-None-Match`, an unchanged page is 304.
         */
        get: operations["listUsers"];
        put?: never;
        /** Create a user */
        post: operations["createUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a user */
        get: operations["getUser"];
        /** Replace a user */
        put: operations["replaceUser"];
        post?: never;
        /** Delete a user with their sessions, posts and uploads */
        delete: operations["deleteUser"];
        options?: never;
        head?: never;
        /** Change a user: absent members stay as they are */
        patch: operations["updateUser"];
        trace?: never;
    };
    "/api/users/{id}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Export everything that is stored about a user */
        get: operations["exportUser"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/organizations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the organisations of the authenticated user, with the role in each */
        get: operations["listOwnOrganizations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/organizations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the organisations of the authenticated user, or all for admins of the service */
        get: operations["listOrganizations"];
        put?: never;
        /** Found an organisation, of which the authenticated user is the owner */
        post: operations["createOrganization"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/organizations/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read an organisation */
        get: operations["getOrganization"];
        put?: never;
        post?: never;
        /** Delete an organisation: its memberships end on every node */
        delete: operations["deleteOrganization"];
        options?: never;
        head?: never;
        /** Change an organisation: absent members stay as they are */
        patch: operations["updateOrganization"];
        trace?: never;
    };
    "/api/organizations/{id}/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the members of an organisation */
        get: operations["listMembers"];
        put?: never;
        /** Add a user to an organisation without an invitation, for admins of the service */
        post: operations["addMember"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/organizations/{id}/members/{userId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a member of an organisation */
        get: operations["getMember"];
        put?: never;
        post?: never;
        /** Remove a member from an organisation, or leave it */
        delete: operations["removeMember"];
        options?: never;
        head?: never;
        /** Give a member another role, which ends tokens and API keys for the former one */
        patch: operations["updateMember"];
        trace?: never;
    };
    "/api/organizations/{id}/invitations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the pending invitations of an organisation, newest first */
        get: operations["listInvitations"];
        put?: never;
        /** Send an invitation to an organisation, which replaces the pending one for the address */
        post: operations["createInvitation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/organizations/{id}/invitations/{invitationId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Withdraw an invitation */
        delete: operations["withdrawInvitation"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/invitations/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Read the invitation of a token, without using it */
        post: operations["checkInvitation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/invitations/accept": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Accept an invitation: as the user of the token, or as a new one with a name and a password */
        post: operations["acceptInvitation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/posts/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Follow new posts, changes and deletions as server-sent events, each once and in commit order
         * @description A client that connects again sends the `id` of the last event as `Last-Event-ID`, as browsers do, and gets what it has missed.
         */
        get: operations["followPosts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/posts/drafts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List your own drafts, newest first
         * @description A page with more than 4 MiB of content has fewer drafts than `limit`.
         */
        get: operations["listDrafts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/posts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List posts, by default newest first
         * @description With `Prefer: handling=strict`, unknown parameters are errors. A page with more than 4 MiB of content has fewer posts than `limit`. So may that of a search, also none: as long as there is a `Link`, the next page may have more.
         */
        get: operations["listPosts"];
        put?: never;
        /** Create a post */
        post: operations["createPost"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/posts/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a post */
        get: operations["getPost"];
        put?: never;
        post?: never;
        /** Delete a post */
        delete: operations["deletePost"];
        options?: never;
        head?: never;
        /** Change a post: absent members stay as they are */
        patch: operations["updatePost"];
        trace?: never;
    };
    "/api/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the entries of the account log, newest first */
        get: operations["listAuditEntries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/admin/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the state of the service: versions, counts, logins of 30 days, failures, storage */
        get: operations["getOverview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/admin/settings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the settings of the node, without secrets */
        get: operations["listSettings"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/admin/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the API keys of all users, newest first */
        get: operations["listAllApiKeys"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/admin/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List events and mails that could not be delivered, newest first */
        get: operations["listFailedDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/admin/deliveries/{id}/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Deliver an event or a mail again that could not be delivered */
        post: operations["retryDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/admin/deliveries/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Forget an event or a mail that could not be delivered */
        delete: operations["deleteDelivery"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/uploads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List uploads, newest first, by default your own */
        get: operations["listUploads"];
        put?: never;
        /** Upload a file */
        post: operations["createUpload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/uploads/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read how much space your uploads take, and may take */
        get: operations["getUploadUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/uploads/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Download a file, or a range of it */
        get: operations["downloadUpload"];
        put?: never;
        post?: never;
        /**
         * Delete an upload and its file
         * @description The entity tags of `If-Match` and `If-None-Match` are those of the record.
         */
        delete: operations["deleteUpload"];
        options?: never;
        head?: never;
        /**
         * Change the record of an upload: absent members stay as they are
         * @description The entity tags of `If-Match` and `If-None-Match` are those of the record.
         */
        patch: operations["updateUpload"];
        trace?: never;
    };
    "/api/uploads/{id}/record": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the record of an upload */
        get: operations["getUpload"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/uploads/{id}/links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the links of an upload, newest first */
        get: operations["listUploadLinks"];
        put?: never;
        /** Create a link that serves an upload without a token */
        post: operations["createUploadLink"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/uploads/{id}/links/{linkId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revoke a link, which stops the downloads that it serves on every node */
        delete: operations["revokeUploadLink"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/uploads/resumable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List your unfinished uploads, newest first */
        get: operations["listResumableUploads"];
        put?: never;
        /**
         * Begin a resumable upload (tus 1.0)
         * @description The bytes follow with PATCH. The first of them may be the body of this request.
         */
        post: operations["createResumableUpload"];
        delete?: never;
        /** Get what resumable uploads support */
        options: operations["getResumableUploadSupport"];
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/uploads/resumable/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read how far a resumable upload is; HEAD is that of tus */
        get: operations["getResumableUpload"];
        put?: never;
        post?: never;
        /**
         * Give up a resumable upload, which removes its bytes
         * @description Once the upload is complete, only its state is removed. The upload itself stays.
         */
        delete: operations["deleteResumableUpload"];
        options?: never;
        head?: never;
        /** Add bytes to a resumable upload; the response to the last of them is that of an upload */
        patch: operations["continueResumableUpload"];
        trace?: never;
    };
    "/api/redirect": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Redirect to the users list */
        get: operations["redirect"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * Health
         * @description The node is healthy
         */
        Health: {
            status: string;
        };
        /**
         * Error
         * @description The request failed
         */
        Error: {
            /** @description What went wrong, for humans */
            error: string;
            /** @description A stable identifier, for programs */
            code?: string;
        };
        /**
         * KeySet
         * @description The public keys that verify access tokens
         */
        KeySet: {
            keys: {
                kty: string;
                crv: string;
                x: string;
                /** @description Keys of ES256 have it */
                y?: string;
                kid: string;
                alg: string;
                use: string;
            }[];
        };
        /**
         * RelatedOrigins
         * @description The origins whose pages may use the passkeys of this domain
         */
        RelatedOrigins: {
            /** @description The origins whose pages may use the passkeys */
            origins: string[];
        };
        /** Login */
        Login: {
            email: string;
            password: string;
        };
        /**
         * User
         * @description A user
         */
        User: {
            /** @description UUIDv7 */
            id: string;
            name: string;
            /** @description Absent if the reader may not see it */
            email?: string;
            /** @description Whether a link that was sent to this address was used. Absent like `email` */
            emailVerified?: boolean;
            /** @enum {string} */
            role: Role;
            /**
             * @description Whether it is a person, or a service, which has no password and acts with API keys
             * @enum {string}
             */
            kind: "person" | "service";
            /** @description Whether an admin has disabled the user. Absent like `email` */
            disabled?: boolean;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            updatedAt: string;
        } & ShownFieldValues;
        /**
         * LoginReply
         * @description The login succeeded; the cookie establishes the session
         */
        LoginReply: {
            /** @description The access token, a JWT. Send it as `Authorization: Bearer` */
            token: string;
            /** @description "Bearer" */
            tokenType: string;
            /** @description Seconds until the token expires; fewer than usual if the session expires earlier */
            expiresIn: number;
            user: components["schemas"]["User"];
            /** @description The organisation for which the token is; null for none. Only with the option `organizations` */
            organization?: {
                /** @description UUIDv7 */
                id: string;
                /** @description The role of the user in it */
                role: string;
                /** @description Another role is another membership */
                membershipId: string;
            } | null;
        };
        /**
         * Errors
         * @description The input is invalid
         */
        Errors: {
            /** @description One sentence per problem, in the order of the schema */
            errors: string[];
            /** @description A stable identifier of a problem that the schema does not describe, such as `BREACHED_PASSWORD` */
            code?: string;
        };
        /**
         * LoginFailure
         * @description Why the login failed, or what it needs besides
         */
        LoginFailure: {
            error: string;
            code: string;
            /** @description Belongs to the second factor; with the code `SECOND_FACTOR_REQUIRED` */
            challenge?: string;
            /** @description The second factors that the user has; with the code `SECOND_FACTOR_REQUIRED` */
            methods?: ("totp" | "recovery-code" | "passkey")[];
        };
        /** TokenRequest */
        TokenRequest: {
            /** @description The organisation for which the token is. Without it, the token is for none */
            organizationId?: string;
        };
        /**
         * RefreshReply
         * @description The session was refreshed; the response has a new token and a new cookie
         */
        RefreshReply: {
            /** @description The access token, a JWT. Send it as `Authorization: Bearer` */
            token: string;
            /** @description "Bearer" */
            tokenType: string;
            /** @description Seconds until the token expires; fewer than usual if the session expires earlier */
            expiresIn: number;
            user: components["schemas"]["User"];
            /** @description The organisation for which the token is; null for none. Only with the option `organizations` */
            organization?: {
                /** @description UUIDv7 */
                id: string;
                /** @description The role of the user in it */
                role: string;
                /** @description Another role is another membership */
                membershipId: string;
            } | null;
        };
        /**
         * Protected
         * @description The user to whom the bearer token belongs
         */
        Protected: {
            user: components["schemas"]["User"];
        };
        /**
         * Session
         * @description A session that has neither ended nor expired
         */
        Session: {
            /** @description UUIDv7 */
            id: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            lastUsedAt: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            expiresAt: string;
            /** @description How the user was authenticated (RFC 8176): `pwd`, `email`, `otp`, `pop`, `user`, `mfa`, `fed` */
            amr: string[];
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            authTime: string;
            /** @description The IP address of the last login or refresh */
            address: string;
            /** @description The `User-Agent` of the last login or refresh; empty if there was none */
            userAgent: string;
            /** @description Whether it is a session of the admin console */
            console: boolean;
            /** @description Whether the access token of this request belongs to it */
            current: boolean;
        };
        /**
         * TokenReply
         * @description Another access token of the session
         */
        TokenReply: {
            /** @description The access token, a JWT. Send it as `Authorization: Bearer` */
            token: string;
            /** @description "Bearer" */
            tokenType: string;
            /** @description Seconds until the token expires; fewer than usual if the session expires earlier */
            expiresIn: number;
            user: components["schemas"]["User"];
            /** @description The organisation for which the token is; null for none. Only with the option `organizations` */
            organization?: {
                /** @description UUIDv7 */
                id: string;
                /** @description The role of the user in it */
                role: string;
                /** @description Another role is another membership */
                membershipId: string;
            } | null;
        };
        /**
         * PasskeyCreationOptions
         * @description A `PublicKeyCredentialCreationOptionsJSON`
         */
        PasskeyCreationOptions: {
            rp: {
                /** @description The domain for which the passkey works */
                id: string;
                name: string;
            };
            user: {
                /** @description The bytes of the id of the user, in base64url */
                id: string;
                name: string;
                displayName: string;
            };
            /** @description In base64url. It is valid once, for five minutes */
            challenge: string;
            pubKeyCredParams: {
                /** @enum {string} */
                type: "public-key";
                alg: number;
            }[];
            /** @description Milliseconds that the browser may wait */
            timeout: number;
            excludeCredentials: {
                /** @enum {string} */
                type: "public-key";
                id: string;
                transports?: string[];
            }[];
            authenticatorSelection: {
                /** @enum {string} */
                residentKey: "required";
                /** @enum {boolean} */
                requireResidentKey: true;
                /** @enum {string} */
                userVerification: "required";
            };
            /** @enum {string} */
            attestation: "none";
        };
        /**
         * RegistrationResponse
         * @description A `RegistrationResponseJSON`
         */
        RegistrationResponse: {
            /**
             * Format: base64url
             * @description The id that the authenticator has given the passkey
             */
            id: string;
            rawId?: string | "" | null;
            type?: string | null;
            authenticatorAttachment?: string | null;
            clientExtensionResults?: Record<string, never> | null;
            response: {
                /**
                 * Format: base64url
                 * @description What the browser says about the ceremony, as JSON
                 */
                clientDataJSON: string;
                /**
                 * Format: base64url
                 * @description The public key, and what the authenticator says about it
                 */
                attestationObject: string;
                transports?: string[] | null;
            };
        };
        /** AddPasskey */
        AddPasskey: {
            /** @description A name to tell passkeys apart */
            name?: string;
            credential: components["schemas"]["RegistrationResponse"];
        };
        /**
         * Passkey
         * @description A passkey with which its user can sign in
         */
        Passkey: {
            /** @description UUIDv7 */
            id: string;
            name: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description The last login; null if there was none
             */
            lastUsedAt: string | null;
            /** @description Whether its provider keeps a copy of it, so that it outlives the device */
            backedUp: boolean;
        };
        /** RenamePasskey */
        RenamePasskey: {
            /** @description A name to tell passkeys apart */
            name: string;
        };
        /**
         * PasskeyRequestOptions
         * @description A `PublicKeyCredentialRequestOptionsJSON`; the cookie binds the ceremony to the browser
         */
        PasskeyRequestOptions: {
            /** @description In base64url. It is valid once, for five minutes */
            challenge: string;
            /** @description Milliseconds that the browser may wait */
            timeout: number;
            /** @description The domain for which the passkey works */
            rpId: string;
            allowCredentials: {
                /** @enum {string} */
                type: "public-key";
                id: string;
                transports?: string[];
            }[];
            /** @enum {string} */
            userVerification: "required";
        };
        /**
         * AuthenticationResponse
         * @description An `AuthenticationResponseJSON`
         */
        AuthenticationResponse: {
            /**
             * Format: base64url
             * @description The id that the authenticator has given the passkey
             */
            id: string;
            rawId?: string | "" | null;
            type?: string | null;
            authenticatorAttachment?: string | null;
            clientExtensionResults?: Record<string, never> | null;
            response: {
                /**
                 * Format: base64url
                 * @description What the browser says about the ceremony, as JSON
                 */
                clientDataJSON: string;
                /**
                 * Format: base64url
                 * @description What the authenticator says about the ceremony
                 */
                authenticatorData: string;
                /**
                 * Format: base64url
                 * @description The signature of both
                 */
                signature: string;
                userHandle?: string | "" | null;
            };
        };
        /** PasskeyLogin */
        PasskeyLogin: {
            credential: components["schemas"]["AuthenticationResponse"];
        };
        /** CreateApiKey */
        CreateApiKey: {
            /** @description What it is for */
            name: string;
            /** @description The actions of the policy that it permits; without this member, all that a key can have */
            actions?: string[];
            /**
             * Format: date-time
             * @description In the future. Without this member, it works until it is deleted
             */
            expiresAt?: string;
            /** @description The organisation for which the key acts, of which its user must be a member. It ends with the membership, also when that gets another role */
            organizationId?: string;
        };
        /**
         * CreatedApiKey
         * @description The API key was created
         */
        CreatedApiKey: {
            /** @description UUIDv7 */
            id: string;
            name: string;
            /** @description The actions of the policy that it permits; null if it permits all that a key can have */
            actions: string[] | null;
            /** @description The organisation for which it acts; null for none */
            organizationId: string | null;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When it was used last, up to two minutes ago; null if it was not used yet
             */
            lastUsedAt: string | null;
            /**
             * Format: date-time
             * @description When it expires; null if it does not
             */
            expiresAt: string | null;
            /** @description The key. Store it: no other response has it. Send it as `Authorization: Bearer` */
            key: string;
        };
        /**
         * ApiKey
         * @description An API key, without its secret
         */
        ApiKey: {
            /** @description UUIDv7 */
            id: string;
            name: string;
            /** @description The actions of the policy that it permits; null if it permits all that a key can have */
            actions: string[] | null;
            /** @description The organisation for which it acts; null for none */
            organizationId: string | null;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When it was used last, up to two minutes ago; null if it was not used yet
             */
            lastUsedAt: string | null;
            /**
             * Format: date-time
             * @description When it expires; null if it does not
             */
            expiresAt: string | null;
        };
        /** ChangePassword */
        ChangePassword: {
            currentPassword: string;
            password: string;
        };
        /** RequestPasswordReset */
        RequestPasswordReset: {
            email: string;
        };
        /**
         * MailReply
         * @description Accepted; if the user is entitled to a link, it is mailed afterwards
         */
        MailReply: {
            message: string;
        };
        /** CheckPasswordReset */
        CheckPasswordReset: {
            /** @description The token in the link of the mail, after `#token=` */
            token: string;
        };
        /** PasswordResetCheck */
        PasswordResetCheck: {
            /** @description The ways to sign in that the reset removes */
            removes: {
                /** @description UUIDv7 */
                id: string;
                /** @enum {string} */
                kind: "passkey" | "totp" | "identity" | "api-key";
                /** @description The name of a passkey or an API key; the id of the provider of an identity */
                name: string | null;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                addedAt: string;
            }[];
            /** @description Whether `keep` may name passkeys, identities and the app: the address was verified before */
            mayKeep: boolean;
            /** @description The address of the account, to which the link was sent */
            email: string;
            /** @description Whether an admin has invited the user */
            isInvitation: boolean;
            /** @description The name of the user who has invited; null if it is not known, or the account may not see it */
            invitedBy: string | null;
        };
        /** ConfirmPasswordReset */
        ConfirmPasswordReset: {
            /** @description The token in the link of the mail, after `#token=` */
            token: string;
            password: string;
            /** @description The ids of ways to sign in that stay although they were added recently. The check lists them */
            keep?: string[];
        };
        /**
         * Provider
         * @description A provider with which users sign in
         */
        Provider: {
            /** @description Its name in paths, such as `github` */
            id: string;
            /** @description Its name for people, such as `GitHub` */
            name: string;
        };
        /** ProviderResponse */
        ProviderResponse: {
            /** @description What the start has sent to the provider */
            state?: string;
            /** @description The authorization code */
            code?: string;
            /** @description The issuer (RFC 9207) */
            iss?: string;
            /** @description Why the provider has not logged the user in */
            error?: string;
            /** @description What Apple says about the user the first time; left out if the address of the callback would have more than 12 KiB */
            user?: unknown;
        };
        /** BeginProvider */
        BeginProvider: {
            /** @description Where the browser goes at the end: a path of this origin, or a URL of `publicUrl` or an allowed origin, of at most 2048 characters with those encoded that are not ASCII */
            returnTo?: string;
        };
        /**
         * BegunProvider
         * @description Where the page sends the browser
         */
        BegunProvider: {
            /** @description The address at the provider; the browser with the cookie of this response opens it */
            url: string;
        };
        /** JoinByProvider */
        JoinByProvider: {
            /** @description The token in the link of the mail, after `#token=` */
            token: string;
            /** @description Where the browser goes at the end: a path of this origin, or a URL of `publicUrl` or an allowed origin, of at most 2048 characters with those encoded that are not ASCII */
            returnTo?: string;
        };
        /**
         * Identity
         * @description An account at a provider with which its user can sign in
         */
        Identity: {
            /** @description UUIDv7 */
            id: string;
            /** @description The id of the provider */
            provider: string;
            /** @description The address that the provider gave last, verified or not; null if there was none */
            email: string | null;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description The last login; null if there was none
             */
            lastUsedAt: string | null;
        };
        /** BackChannelLogout */
        BackChannelLogout: {
            /** @description A JWT of the provider */
            logout_token: string;
        };
        /**
         * LoggedOut
         * @description The sessions have ended
         */
        LoggedOut: Record<string, never>;
        /**
         * CompleteLogin
         * @description The challenge, and one of the other members
         */
        CompleteLogin: {
            /** @description The `challenge` of the response to the first factor */
            challenge: string;
            /** @description The six digits that the authenticator app shows */
            code?: string;
            /** @description A recovery code; case, spaces and hyphens do not matter */
            recoveryCode?: string;
            passkey?: components["schemas"]["AuthenticationResponse"];
        };
        /**
         * StepUp
         * @description One of the members
         */
        StepUp: {
            password?: string;
            /** @description The six digits that the authenticator app shows */
            code?: string;
            /** @description A recovery code; case, spaces and hyphens do not matter */
            recoveryCode?: string;
            credential?: components["schemas"]["AuthenticationResponse"];
            /** @description The code of a mail, for users without a second factor */
            mail?: {
                /** @description From the response of POST /api/auth/step-up/mail */
                id: string;
                /** @description The eight digits in the mail */
                code: string;
            };
        };
        /**
         * StepUpReply
         * @description The user is authenticated once more; the token belongs to the same session
         */
        StepUpReply: {
            /** @description The access token, a JWT. Send it as `Authorization: Bearer` */
            token: string;
            /** @description "Bearer" */
            tokenType: string;
            /** @description Seconds until the token expires; fewer than usual if the session expires earlier */
            expiresIn: number;
            user: components["schemas"]["User"];
            /** @description The organisation for which the token is; null for none. Only with the option `organizations` */
            organization?: {
                /** @description UUIDv7 */
                id: string;
                /** @description The role of the user in it */
                role: string;
                /** @description Another role is another membership */
                membershipId: string;
            } | null;
        };
        /**
         * SecondFactor
         * @description How the user proves to be the owner
         */
        SecondFactor: {
            /** @description The authenticator app; null if logins need none */
            totp: {
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                confirmedAt: string;
            } | null;
            /** @description Recovery codes that were not used */
            recoveryCodesLeft: number;
            /** @description Passkeys, which also serve as a second factor */
            passkeys: number;
            /** @description Whether the user has a password */
            password: boolean;
            /** @description Whether the code of a mail steps up, with POST /api/auth/step-up/mail: for users without a second factor */
            mail: boolean;
            /** @description The ids of the providers that step up, with POST /api/auth/providers/{id}/step-up. One that cannot log the user in once more does so only for users who have nothing else */
            providers: string[];
        };
        /**
         * NewTotp
         * @description The secret for an authenticator app. It has no effect until a code confirms it
         */
        NewTotp: {
            /** @description The secret in base32, to be typed into an app that cannot scan */
            secret: string;
            /** @description The same as an `otpauth:` address, which opens apps on the same device */
            uri: string;
            /** @description The address as a QR code: an SVG document */
            qrCode: string;
        };
        /** ConfirmTotp */
        ConfirmTotp: {
            /** @description The six digits that the authenticator app shows */
            code: string;
        };
        /**
         * ConfirmedTotp
         * @description From now on, logins need a code
         */
        ConfirmedTotp: {
            /** @description Ten codes, of which each replaces the authenticator app once. They are never shown again */
            recoveryCodes: string[];
            /** @description A new access token of this session, which counts as authenticated by both factors */
            token: string;
        };
        /**
         * RecoveryCodes
         * @description New codes; all earlier ones are void
         */
        RecoveryCodes: {
            /** @description Ten codes, of which each replaces the authenticator app once. They are never shown again */
            recoveryCodes: string[];
        };
        /** SignUp */
        SignUp: {
            name: string;
            /** Format: email */
            email: string;
            password?: string;
            /** @description False for a client that keeps no cookies: the response has `signUpId` instead of a cookie */
            cookie?: boolean;
        } & ChangedFieldValues;
        /**
         * SignUpReply
         * @description Accepted; what happens depends on the address, and only its mailbox learns it
         */
        SignUpReply: {
            message: string;
            /** @description What proves to the confirmation that this client has chosen the password; only with `cookie: false` */
            signUpId?: string;
        };
        /** CheckSignUp */
        CheckSignUp: {
            /** @description The token in the link of the mail, after `#token=` */
            token: string;
            /** @description From the response to the sign-up, for clients without cookies */
            signUpId?: string;
        };
        /** SignUpCheck */
        SignUpCheck: {
            /** @description The address of the account, to which the link was sent */
            email: string;
        };
        /** ConfirmSignUp */
        ConfirmSignUp: {
            /** @description The token in the link of the mail, after `#token=` */
            token: string;
            /** @description From the response to the sign-up, for clients without cookies */
            signUpId?: string;
            /** @description Whether the response sets the cookie of a session, as a login with the password does */
            logIn?: boolean;
            name?: string;
            password?: string;
        } & ChangedFieldValues;
        /**
         * ConfirmationErrors
         * @description The input is invalid
         */
        ConfirmationErrors: {
            /** @description One sentence per problem, in the order of the schema */
            errors: string[];
            /** @description `PASSWORD_REQUIRED` if the request must be repeated with a password, `BREACHED_PASSWORD` if with another one */
            code?: string;
        };
        /** RequestLoginMail */
        RequestLoginMail: {
            email: string;
            /** @description False for a client that keeps no cookies: the response has `loginId` instead of a cookie */
            cookie?: boolean;
        };
        /**
         * LoginMailReply
         * @description Accepted; if the address has an account, a link and a code are mailed afterwards
         */
        LoginMailReply: {
            message: string;
            /** @description What the code of the mail has to be sent with; only with `cookie: false` */
            loginId?: string;
        };
        /** CheckLoginMail */
        CheckLoginMail: {
            /** @description The token in the link of the mail, after `#token=` */
            token: string;
            /** @description From the response to the request, for clients without cookies */
            loginId?: string;
        };
        /**
         * LoginMailAccount
         * @description The link is valid, and stays so
         */
        LoginMailAccount: {
            /** @description The address of the account that the link logs in to */
            email: string;
            /** @description Whether this browser or client has requested the mail */
            requestedHere: boolean;
            /** @description Whether the login removes the password and the other ways to sign in, because they were set up before anybody had verified the address */
            removes: boolean;
        };
        /**
         * ConfirmLoginMail
         * @description The token of the link, or the code; without the cookie of the request, the code needs `loginId`
         */
        ConfirmLoginMail: {
            /** @description The token in the link of the mail, after `#token=` */
            token?: string;
            /** @description The eight digits in the mail */
            code?: string;
            /** @description From the response to the request, for clients without cookies */
            loginId?: string;
        };
        /**
         * StepUpMailReply
         * @description Accepted; a code is on its way to the address of the user
         */
        StepUpMailReply: {
            message: string;
            /** @description What the code of the mail has to be sent with */
            id: string;
        };
        /**
         * SignInSettings
         * @description What a login and a sign-up consist of in this service
         */
        SignInSettings: {
            /** @description Whether anybody may sign up */
            signUp: boolean;
            /** @description Whether a link and a code in a mail log users in */
            loginMail: boolean;
            /** @description The providers, in the order of the options */
            providers: components["schemas"]["Provider"][];
            /** @description The fields of the host that users may write themselves, in the order of its options */
            fields: {
                properties: {
                    [key: string]: {
                        [key: string]: unknown;
                    };
                };
            };
        };
        /** UseToken */
        UseToken: {
            /** @description The token in the link of the mail, after `#token=` */
            token: string;
        };
        /** ConfirmEmail */
        ConfirmEmail: {
            /** @description The token in the link of the mail, after `#token=` */
            token: string;
            password?: string;
        };
        /**
         * UserPart
         * @description The members that the parameter `fields` has named
         */
        UserPart: {
            /** @description UUIDv7 */
            id: string;
            name?: string;
            /** @description Absent if the reader may not see it */
            email?: string;
            /** @description Whether a link that was sent to this address was used. Absent like `email` */
            emailVerified?: boolean;
            /** @enum {string} */
            role?: Role;
            /**
             * @description Whether it is a person, or a service, which has no password and acts with API keys
             * @enum {string}
             */
            kind?: "person" | "service";
            /** @description Whether an admin has disabled the user. Absent like `email` */
            disabled?: boolean;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt?: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            updatedAt?: string;
        } & ShownFieldValues;
        /** CreateUser */
        CreateUser: {
            name: string;
            /** Format: email */
            email: string;
            /** @enum {string} */
            role?: Role;
            password?: string;
            /** @enum {string} */
            kind?: "person" | "service";
        } & ChangedFieldValues;
        /** ReplaceUser */
        ReplaceUser: {
            name: string;
            /** Format: email */
            email: string;
            /** @enum {string} */
            role?: Role;
        } & ChangedFieldValues;
        /** PatchUser */
        PatchUser: {
            name?: string;
            /** Format: email */
            email?: string;
            /** @enum {string} */
            role?: Role;
            /** @description Whether the user is disabled. Only an admin may set it */
            disabled?: boolean;
        } & ChangedFieldValues;
        /**
         * UploadLink
         * @description A link that serves an upload
         */
        UploadLink: {
            /** @description UUIDv7 */
            id: string;
            /** @description Empty if none was given */
            name: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            expiresAt: string;
            /** @description The id of the user who created it; null if it was the host */
            createdBy: string | null;
            /** @description The id of the API key with which it was created, which may have been deleted; null without one */
            keyId: string | null;
            /** @description The name of that key; null if it was deleted, or is not one of the owner of the upload */
            keyName: string | null;
        };
        /**
         * AuditEntry
         * @description An entry of the account log: who did what and when
         */
        AuditEntry: {
            /** @description UUIDv7 */
            id: string;
            /** @enum {string} */
            action: "login" | "login.failed" | "login.second-factor-failed" | "login.mail-request" | "logout" | "step-up" | "step-up.failed" | "step-up.mail-request" | "session.refresh-reuse" | "session.end" | "password.change" | "password.change-failed" | "password.reset-request" | "password.reset" | "password.remove" | "user.create" | "user.sign-up" | "user.invite" | "user.import" | "user.email-change" | "user.email-verify" | "user.undo-change" | "user.role-change" | "user.disable" | "user.enable" | "user.delete" | "passkey.add" | "passkey.rename" | "passkey.remove" | "totp.add" | "totp.remove" | "api-key.add" | "api-key.remove" | "identity.add" | "identity.remove" | "recovery-codes.create" | "recovery-code.use" | "keys.rotate" | "backup.create" | "users.export" | "user.export" | "upload.read" | "upload.update" | "upload.delete" | "upload-link.create" | "upload-link.revoke" | "delivery.retry" | "delivery.discard" | "organization.create" | "organization.update" | "organization.delete" | "organization.invite" | "organization.withdraw-invitation" | "membership.add" | "membership.role-change" | "membership.remove" | "access.denied" | "access.throttled";
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            at: string;
            /** @description The user who did it; null if the request was not authenticated */
            actorId: string | null;
            /** @description The user whose account it concerns; null if there is no such account */
            userId: string | null;
            /** @description The session in which it happened, or which it concerns */
            sessionId: string | null;
            /** @description The API key with which it was done; null if none was used */
            keyId: string | null;
            /** @description The organisation that it concerns; null if it concerns none */
            organizationId: string | null;
            /** @description The client address; empty if the reader may not see it */
            address: string;
            /** @description The `User-Agent` of the client; empty if the reader may not see it */
            userAgent: string;
        };
        /**
         * UserExport
         * @description Everything that is stored about the user
         */
        UserExport: {
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            exportedAt: string;
            user: components["schemas"]["User"];
            /**
             * Format: date-time
             * @description When the address was changed last; null if it never was
             */
            emailChangedAt: string | null;
            /** @description The ways to sign in, without their secrets */
            credentials: {
                /** @description Whether the user has a password */
                password: boolean;
                /** @description The authenticator app; null if there is none */
                totp: {
                    /**
                     * Format: date-time
                     * @description RFC 3339, UTC
                     */
                    confirmedAt: string;
                } | null;
                recoveryCodesLeft: number;
                passkeys: components["schemas"]["Passkey"][];
                identities: {
                    /** @description UUIDv7 */
                    id: string;
                    /** @description The id of the provider */
                    provider: string;
                    /** @description The address that the provider gave last, verified or not; null if there was none */
                    email: string | null;
                    /**
                     * Format: date-time
                     * @description RFC 3339, UTC
                     */
                    createdAt: string;
                    /**
                     * Format: date-time
                     * @description The last login; null if there was none
                     */
                    lastUsedAt: string | null;
                    /** @description Who says who the user is */
                    issuer: string;
                    /** @description The id of the user there */
                    subject: string;
                }[];
                apiKeys: components["schemas"]["ApiKey"][];
            };
            sessions: {
                /** @description UUIDv7 */
                id: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                createdAt: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                lastUsedAt: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                expiresAt: string;
                /** @description How the user was authenticated (RFC 8176): `pwd`, `email`, `otp`, `pop`, `user`, `mfa`, `fed` */
                amr: string[];
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                authTime: string;
                /** @description The IP address of the last login or refresh */
                address: string;
                /** @description The `User-Agent` of the last login or refresh; empty if there was none */
                userAgent: string;
                /** @description Whether it is a session of the admin console */
                console: boolean;
            }[];
            /** @description The networks that the user has logged in from */
            networks: {
                network: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                lastUsedAt: string;
            }[];
            /** @description Of organisations, the one joined last first */
            memberships: {
                id: string;
                /** @description UUIDv7 */
                organizationId: string;
                /** @description Its name */
                organization: string;
                role: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                createdAt: string;
            }[];
            pending: {
                /** @description Invitations to organisations to the address of the user, if it is verified */
                invitations: {
                    /** @description UUIDv7 */
                    id: string;
                    /** @description UUIDv7 */
                    organizationId: string;
                    /** @description Its name */
                    organization: string;
                    email: string;
                    role: string;
                    /**
                     * Format: date-time
                     * @description RFC 3339, UTC
                     */
                    createdAt: string;
                    /**
                     * Format: date-time
                     * @description RFC 3339, UTC
                     */
                    expiresAt: string;
                }[];
                /** @description Links that were mailed and still work, without their tokens */
                links: {
                    /** @description `set-password`, `verify-email`, `undo-change`, `log-in` or `step-up` */
                    kind: string;
                    /** @description The address that it verifies or restores; null if there is none */
                    email: string | null;
                    /**
                     * Format: date-time
                     * @description RFC 3339, UTC
                     */
                    createdAt: string;
                    /**
                     * Format: date-time
                     * @description RFC 3339, UTC
                     */
                    expiresAt: string;
                }[];
                /** @description Mails that were not sent yet, without their contents */
                mails: {
                    /** @description The limit that it counts toward, such as `account` */
                    kind: string;
                    /** @description The recipient; null if it will not be sent */
                    to: string | null;
                    /**
                     * Format: date-time
                     * @description RFC 3339, UTC
                     */
                    createdAt: string;
                }[];
            };
            /** @description Newest first */
            posts: {
                /** @description UUIDv7 */
                id: string;
                title: string;
                content: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                createdAt: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                updatedAt: string;
            }[];
            /** @description Posts that are not published, newest first: only if the user exports them */
            drafts?: {
                /** @description UUIDv7 */
                id: string;
                title: string;
                content: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                createdAt: string;
                /**
                 * Format: date-time
                 * @description When it will be published
                 */
                publishAt: string | null;
            }[];
            /** @description Newest first, without their bytes */
            uploads: {
                /** @description The address of the bytes; absolute if the public URL is set */
                fileUrl: string;
                /** @description UUIDv7 */
                id: string;
                /** @description The name of the file, without a path */
                filename: string;
                /** @description Found out from the bytes */
                mediaType: string;
                /** @description Size in bytes */
                size: number;
                /** @description Hash of the bytes, hexadecimal */
                sha256: string;
                description: string;
                /**
                 * @description Who may download the file: `public` is everybody, `private` the owner, admins and holders of a link
                 * @enum {string}
                 */
                visibility: "public" | "private";
                /** @description The id of the owner */
                userId: string;
                /**
                 * Format: date-time
                 * @description RFC 3339, UTC
                 */
                createdAt: string;
                /** @description Without their secrets */
                links: components["schemas"]["UploadLink"][];
            }[];
            /** @description The entries about the account, newest first */
            accountLog: components["schemas"]["AuditEntry"][];
        };
        /**
         * OwnOrganization
         * @description An organisation of which the user is a member
         */
        OwnOrganization: {
            /** @description UUIDv7 */
            id: string;
            name: string;
            slug: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            updatedAt: string;
            /** @description The role of the user in the organisation */
            role: string;
            /** @description UUIDv7 */
            membershipId: string;
        };
        /**
         * Organization
         * @description An organisation
         */
        Organization: {
            /** @description UUIDv7 */
            id: string;
            name: string;
            slug: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            updatedAt: string;
        };
        /** CreateOrganization */
        CreateOrganization: {
            name: string;
            /** @description Unique: lower-case letters of ASCII, digits, and hyphens between them */
            slug?: string;
        };
        /** PatchOrganization */
        PatchOrganization: {
            name?: string;
            /** @description Unique: lower-case letters of ASCII, digits, and hyphens between them */
            slug?: string;
        };
        /**
         * Member
         * @description A member of an organisation
         */
        Member: {
            /** @description The id of the membership. With another role it is another one */
            id: string;
            /** @description UUIDv7 */
            userId: string;
            name: string;
            /** @description Absent if the reader may not see it */
            email?: string;
            role: string;
            /** @description Whether an admin of the service has disabled the user. Absent like `email` */
            disabled?: boolean;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt: string;
        };
        /** AddMember */
        AddMember: {
            userId: string;
            /** @description `owner`, `admin`, `member`, or one of the options */
            role: string;
        };
        /** PatchMember */
        PatchMember: {
            /** @description `owner`, `admin`, `member`, or one of the options */
            role: string;
        };
        /** CreateInvitation */
        CreateInvitation: {
            /** Format: email */
            email: string;
            /** @description `owner`, `admin`, `member`, or one of the options */
            role?: string;
        };
        /**
         * Invitation
         * @description An invitation to an organisation that is pending
         */
        Invitation: {
            /** @description UUIDv7 */
            id: string;
            email: string;
            role: string;
            /** @description The id of the user who has invited; null if it was the service */
            invitedBy: string | null;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            expiresAt: string;
        };
        /**
         * CheckedInvitation
         * @description The invitation can be accepted
         */
        CheckedInvitation: {
            organization: {
                /** @description UUIDv7 */
                id: string;
                name: string;
            };
            /** @description The address to which it was sent */
            email: string;
            role: string;
            /** @description The name of the user who has invited; null if it was the service */
            invitedBy: string | null;
            /** @description Whether an account has the address. Its user accepts it in a session */
            hasAccount: boolean;
        };
        /** AcceptInvitation */
        AcceptInvitation: {
            /** @description The token in the link of the mail, after `#token=` */
            token: string;
            name?: string;
            password?: string;
        };
        /**
         * AcceptedInvitation
         * @description The user is a member of the organisation
         */
        AcceptedInvitation: {
            /** @description The id of the membership */
            id: string;
            /** @description UUIDv7 */
            organizationId: string;
            /** @description UUIDv7 */
            userId: string;
            role: string;
        };
        /**
         * Post
         * @description A post
         */
        Post: {
            /** @description UUIDv7 */
            id: string;
            /** @description The id of the author */
            authorId: string;
            title: string;
            content: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description The same as `createdAt`; null for a draft, whose `createdAt` changes when it is published
             */
            publishedAt: string | null;
            /**
             * Format: date-time
             * @description Of drafts only: when it will be published; null if that is not planned
             */
            publishAt?: string | null;
            /** @description The place of the post in commit order. Events after it are those of the posts that follow. Of a draft, its place in the list of drafts */
            cursor: string;
        };
        /** CreatePost */
        CreatePost: {
            title: string;
            /** @description At most 65536 bytes in UTF-8 */
            content: string;
            /**
             * Format: date-time
             * @description Null for a draft, which only its author sees. A time in the future (RFC 3339) for one that is published then; any other time for a post, as without this member
             */
            publishedAt?: string | null;
            /** @description The id of the author. By default your own; only an admin may name another user */
            authorId?: string;
        };
        /** PatchPost */
        PatchPost: {
            title?: string;
            /** @description At most 65536 bytes in UTF-8 */
            content?: string;
            /**
             * Format: date-time
             * @description When a draft is published: at once, unless the time (RFC 3339) is in the future. With null, no time is planned
             */
            publishedAt?: string | null;
        };
        /**
         * Overview
         * @description What an admin has to know about the service
         */
        Overview: {
            /** @description The version of Usher */
            version: string;
            database: {
                /** @description The version of PostgreSQL */
                version: string;
                roundTripMs: number;
                /** @description How many processes of Usher listen to the database */
                processes: number;
                /** @description Whether this process receives notifications */
                notifications: boolean;
            };
            users: {
                count: number;
                /** @description False if there are more than 10,000: then it is an estimate */
                isExact: boolean;
            };
            posts: {
                count: number;
                /** @description False if there are more than 10,000: then it is an estimate */
                isExact: boolean;
            };
            uploads: {
                count: number;
                /** @description False if there are more than 10,000: then it is an estimate */
                isExact: boolean;
                /** @description Of all files together; null until this process has measured it */
                bytes: number | null;
            };
            deliveries: {
                /** @description Events and mails that wait, up to 10,000 */
                waiting: number;
                /** @description Those of them that have failed before */
                retrying: number;
                /** @description Those that were given up */
                failed: number;
            };
            /** @description The time since the last complete backup; null if none is known */
            backupAgeSeconds: number | null;
            /** @description The last 30 days, oldest first */
            days: {
                /** @description A date, in UTC */
                day: string;
                /** @description New users: by sign-up, by an admin, by an import or by the host */
                signUps: number;
                logins: number;
                failedLogins: number;
            }[];
        };
        /**
         * Setting
         * @description A setting of the node
         */
        Setting: {
            name: string;
            /** @description As text; null if it is not set. Secrets are masked */
            value: string | null;
            /** @description Where the value comes from */
            source: string;
        };
        /**
         * OwnedApiKey
         * @description An API key, with its user
         */
        OwnedApiKey: {
            /** @description UUIDv7 */
            id: string;
            name: string;
            /** @description The actions of the policy that it permits; null if it permits all that a key can have */
            actions: string[] | null;
            /** @description The organisation for which it acts; null for none */
            organizationId: string | null;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When it was used last, up to two minutes ago; null if it was not used yet
             */
            lastUsedAt: string | null;
            /**
             * Format: date-time
             * @description When it expires; null if it does not
             */
            expiresAt: string | null;
            /** @description Whose key it is */
            userId: string;
        };
        /**
         * Delivery
         * @description A delivery of an event or a mail that was given up
         */
        Delivery: {
            /** @description UUIDv7 */
            id: string;
            /** @enum {string} */
            kind: "event" | "mail";
            /** @description The handler or webhook; `mail` for a mail */
            consumer: string;
            /** @description The name of the event; `mail` for a mail */
            type: string;
            /** @description The user, post or upload that an event is about */
            subject: string;
            /** @description The id of the user that it concerns; null if there is none */
            userId: string | null;
            /** @description The address to which a mail could not be sent; null for an event */
            recipient: string | null;
            attempts: number;
            /** @description The message of the last error */
            error: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            failedAt: string;
        };
        /** UploadForm */
        UploadForm: {
            /** @description The file */
            file: string;
            /**
             * @description What the file is
             * @example A greeting
             */
            description: string;
            /**
             * @description Who may download the file: `public` is everybody, `private` the owner, admins and holders of a link
             * @default public
             * @enum {string}
             */
            visibility: "public" | "private";
        };
        /**
         * Upload
         * @description The file and its record are stored
         */
        Upload: {
            /** @description The address of the bytes; absolute if the public URL is set */
            fileUrl: string;
            /** @description UUIDv7 */
            id: string;
            /** @description The name of the file, without a path */
            filename: string;
            /** @description Found out from the bytes */
            mediaType: string;
            /** @description Size in bytes */
            size: number;
            /** @description Hash of the bytes, hexadecimal */
            sha256: string;
            description: string;
            /**
             * @description Who may download the file: `public` is everybody, `private` the owner, admins and holders of a link
             * @enum {string}
             */
            visibility: "public" | "private";
        };
        /**
         * UploadRecord
         * @description An upload, without its bytes
         */
        UploadRecord: {
            /** @description The address of the bytes; absolute if the public URL is set */
            fileUrl: string;
            /** @description UUIDv7 */
            id: string;
            /** @description The name of the file, without a path */
            filename: string;
            /** @description Found out from the bytes */
            mediaType: string;
            /** @description Size in bytes */
            size: number;
            /** @description Hash of the bytes, hexadecimal */
            sha256: string;
            description: string;
            /**
             * @description Who may download the file: `public` is everybody, `private` the owner, admins and holders of a link
             * @enum {string}
             */
            visibility: "public" | "private";
            /** @description The id of the owner */
            userId: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt: string;
        };
        /**
         * UploadUsage
         * @description What the uploads of the actor take, and may take
         */
        UploadUsage: {
            /** @description Bytes that the uploads of the actor take */
            bytes: number;
            /** @description How many there are */
            files: number;
            /** @description How many bytes they may take; null if there is no limit */
            quotaBytes: number | null;
            /** @description How many files they may take; null if there is no limit */
            quotaFiles: number | null;
        };
        /** PatchUpload */
        PatchUpload: {
            /**
             * @description What the file is
             * @example A greeting
             */
            description?: string;
            /** @description A path is cut off */
            filename?: string;
            /**
             * @description Who may download the file: `public` is everybody, `private` the owner, admins and holders of a link
             * @enum {string}
             */
            visibility?: "public" | "private";
        };
        /** CreateUploadLink */
        CreateUploadLink: {
            /** @description How long the link works */
            seconds: number;
            /** @description What the link is for, such as the name of its recipient */
            name?: string;
        };
        /**
         * NewUploadLink
         * @description The link works
         */
        NewUploadLink: {
            /** @description UUIDv7 */
            id: string;
            /** @description Empty if none was given */
            name: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            expiresAt: string;
            /** @description The id of the user who created it; null if it was the host */
            createdBy: string | null;
            /** @description The id of the API key with which it was created, which may have been deleted; null without one */
            keyId: string | null;
            /** @description The name of that key; null if it was deleted, or is not one of the owner of the upload */
            keyName: string | null;
            /** @description Serves the bytes without a token, to whoever has it. It is not shown again. Absolute if the public URL is set */
            url: string;
        };
        /**
         * ResumableUpload
         * @description An upload that arrives in several requests
         */
        ResumableUpload: {
            /** @description UUIDv7 */
            id: string;
            /** @description How many bytes are stored durably */
            offset: number;
            /** @description How many bytes it will have */
            length: number;
            filename: string;
            description: string;
            /**
             * @description Who may download the file: `public` is everybody, `private` the owner, admins and holders of a link
             * @enum {string}
             */
            visibility: "public" | "private";
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC
             */
            expiresAt: string;
            /** @description The finished upload, or null */
            upload: components["schemas"]["UploadRecord"] | null;
        };
    };
    responses: {
        /** @description Internal Server Error */
        InternalServerError: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The server failed",
                 *       "code": "INTERNAL_ERROR"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Service Unavailable */
        ServiceUnavailable: {
            headers: {
                /** @description Seconds until the client may try again */
                "Retry-After"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The database is unavailable, try again",
                 *       "code": "DATABASE_UNAVAILABLE"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The client has the current version already; the response has no body */
        NotModified: {
            headers: {
                /** @description The entity tag of the current version */
                ETag?: string;
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description Precondition Failed */
        PreconditionFailed: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The resource is not in the state that the request expects",
                 *       "code": "PRECONDITION_FAILED"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Bad Request */
        BadRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "errors": [
                 *         "name is required",
                 *         "email must be an email address"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["Errors"];
            };
        };
        /** @description Unauthorized */
        UnauthorizedOfLoginLoginFailure: {
            headers: {
                /** @description The challenge of RFC 6750, or of RFC 9470 */
                "WWW-Authenticate"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "Email or password is wrong",
                 *       "code": "INVALID_CREDENTIALS"
                 *     }
                 */
                "application/json": components["schemas"]["LoginFailure"];
            };
        };
        /** @description Request Timeout */
        RequestTimeout: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The rest of the request body did not arrive in time",
                 *       "code": "BODY_STALLED"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Payload Too Large */
        PayloadTooLarge: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The request body is too large",
                 *       "code": "PAYLOAD_TOO_LARGE"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Unsupported Media Type */
        UnsupportedMediaType: {
            headers: {
                /** @description `identity`, if the body of the request was encoded */
                "Accept-Encoding"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The content type must be application/json",
                 *       "code": "UNSUPPORTED_MEDIA_TYPE"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Too Many Requests */
        TooManyRequests: {
            headers: {
                /** @description Seconds until the client may try again */
                "Retry-After"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "Too many attempts, try again later",
                 *       "code": "TOO_MANY_REQUESTS"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Unauthorized */
        UnauthorizedWithSetCookie: {
            headers: {
                /** @description The challenge of RFC 6750, or of RFC 9470 */
                "WWW-Authenticate"?: string;
                /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                "Set-Cookie"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "A bearer token is required",
                 *       "code": "UNAUTHENTICATED"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Forbidden */
        Forbidden: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "You may not do this",
                 *       "code": "FORBIDDEN"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Not Found */
        NotFoundWithSetCookie: {
            headers: {
                /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                "Set-Cookie"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "Not found",
                 *       "code": "NOT_FOUND"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Internal Server Error */
        InternalServerErrorWithSetCookie: {
            headers: {
                /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                "Set-Cookie"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The server failed",
                 *       "code": "INTERNAL_ERROR"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Service Unavailable */
        ServiceUnavailableWithSetCookie: {
            headers: {
                /** @description Seconds until the client may try again */
                "Retry-After"?: string;
                /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                "Set-Cookie"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The database is unavailable, try again",
                 *       "code": "DATABASE_UNAVAILABLE"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Unauthorized */
        Unauthorized: {
            headers: {
                /** @description The challenge of RFC 6750, or of RFC 9470 */
                "WWW-Authenticate"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "A bearer token is required",
                 *       "code": "UNAUTHENTICATED"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Not Found */
        NotFound: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "Not found",
                 *       "code": "NOT_FOUND"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Forbidden */
        ForbiddenWithWWWAuthenticate: {
            headers: {
                /** @description The challenge of RFC 6750, or of RFC 9470 */
                "WWW-Authenticate"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "You may not do this",
                 *       "code": "FORBIDDEN"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Conflict */
        Conflict: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "This email address is already taken",
                 *       "code": "EMAIL_TAKEN"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Conflict */
        ConflictWithRetryAfter: {
            headers: {
                /** @description Seconds, if a request with the key is in progress */
                "Retry-After"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "This email address is already taken",
                 *       "code": "EMAIL_TAKEN"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Gone */
        Gone: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "What the first request with this idempotency key has written was deleted since",
                 *       "code": "GONE"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Unprocessable Entity */
        UnprocessableEntity: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The idempotency key was used for a different request",
                 *       "code": "IDEMPOTENCY_KEY_REUSED"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Unauthorized */
        UnauthorizedOfLogin: {
            headers: {
                /** @description The challenge of RFC 6750, or of RFC 9470 */
                "WWW-Authenticate"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "Email or password is wrong",
                 *       "code": "INVALID_CREDENTIALS"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Bad Request */
        BadRequestConfirmationErrors: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "errors": [
                 *         "name is required",
                 *         "email must be an email address"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["ConfirmationErrors"];
            };
        };
        /** @description The client has the current version already; the response has no body */
        NotModifiedWithLinkAndPreferenceApplied: {
            headers: {
                /** @description The entity tag of the current version */
                ETag?: string;
                /** @description The path of the next page, with `rel="next"`, if there is one */
                Link?: string;
                /** @description `handling=strict`, if the request has preferred it */
                "Preference-Applied"?: string;
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description Bad Request */
        BadRequestWithPreferenceApplied: {
            headers: {
                /** @description `handling=strict`, if the request has preferred it */
                "Preference-Applied"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "errors": [
                 *         "name is required",
                 *         "email must be an email address"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["Errors"];
            };
        };
        /** @description Unauthorized */
        UnauthorizedWithPreferenceApplied: {
            headers: {
                /** @description The challenge of RFC 6750, or of RFC 9470 */
                "WWW-Authenticate"?: string;
                /** @description `handling=strict`, if the request has preferred it */
                "Preference-Applied"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "A bearer token is required",
                 *       "code": "UNAUTHENTICATED"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Not Acceptable */
        NotAcceptable: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "None of the accepted media types is available. Available: application/json",
                 *       "code": "NOT_ACCEPTABLE"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Precondition Failed */
        PreconditionFailedWithPreferenceApplied: {
            headers: {
                /** @description `handling=strict`, if the request has preferred it */
                "Preference-Applied"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The resource is not in the state that the request expects",
                 *       "code": "PRECONDITION_FAILED"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Internal Server Error */
        InternalServerErrorWithPreferenceApplied: {
            headers: {
                /** @description `handling=strict`, if the request has preferred it */
                "Preference-Applied"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The server failed",
                 *       "code": "INTERNAL_ERROR"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Service Unavailable */
        ServiceUnavailableWithPreferenceApplied: {
            headers: {
                /** @description Seconds until the client may try again */
                "Retry-After"?: string;
                /** @description `handling=strict`, if the request has preferred it */
                "Preference-Applied"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The database is unavailable, try again",
                 *       "code": "DATABASE_UNAVAILABLE"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Unsupported Media Type */
        UnsupportedMediaTypeWithAcceptPatch: {
            headers: {
                /** @description `identity`, if the body of the request was encoded */
                "Accept-Encoding"?: string;
                /** @description The media types that the body of a change may have */
                "Accept-Patch"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The content type must be application/json",
                 *       "code": "UNSUPPORTED_MEDIA_TYPE"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The client has the current version already; the response has no body */
        NotModifiedWithLink: {
            headers: {
                /** @description The entity tag of the current version */
                ETag?: string;
                /** @description The path of the next page, with `rel="next"`, if there is one */
                Link?: string;
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description Insufficient Storage */
        InsufficientStorage: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "There is no space for the file",
                 *       "code": "STORAGE_FULL"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description The client has the current version already; the response has no body */
        NotModifiedWithAcceptRangesAndContentDispositionAndLastModified: {
            headers: {
                /** @description The entity tag of the current version */
                ETag?: string;
                /** @description `bytes`: ranges can be requested */
                "Accept-Ranges"?: string;
                /** @description When the file was uploaded */
                "Last-Modified"?: string;
                /** @description The name of the file, and whether a browser may show it */
                "Content-Disposition"?: string;
                [name: string]: unknown;
            };
            content?: never;
        };
        /** @description Range Not Satisfiable */
        RangeNotSatisfiableWithContentRange: {
            headers: {
                /** @description Which bytes these are, and how many there are */
                "Content-Range"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The range is beyond the end",
                 *       "code": "RANGE_NOT_SATISFIABLE"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Bad Request */
        BadRequestWithTusResumable: {
            headers: {
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "errors": [
                 *         "name is required",
                 *         "email must be an email address"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["Errors"];
            };
        };
        /** @description Request Timeout */
        RequestTimeoutWithTusResumable: {
            headers: {
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The rest of the request body did not arrive in time",
                 *       "code": "BODY_STALLED"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Payload Too Large */
        PayloadTooLargeWithTusResumable: {
            headers: {
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The request body is too large",
                 *       "code": "PAYLOAD_TOO_LARGE"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Unsupported Media Type */
        UnsupportedMediaTypeWithTusResumable: {
            headers: {
                /** @description `identity`, if the body of the request was encoded */
                "Accept-Encoding"?: string;
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The content type must be application/json",
                 *       "code": "UNSUPPORTED_MEDIA_TYPE"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Internal Server Error */
        InternalServerErrorWithTusResumable: {
            headers: {
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The server failed",
                 *       "code": "INTERNAL_ERROR"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Service Unavailable */
        ServiceUnavailableWithTusResumable: {
            headers: {
                /** @description Seconds until the client may try again */
                "Retry-After"?: string;
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The database is unavailable, try again",
                 *       "code": "DATABASE_UNAVAILABLE"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Unauthorized */
        UnauthorizedWithTusResumable: {
            headers: {
                /** @description The challenge of RFC 6750, or of RFC 9470 */
                "WWW-Authenticate"?: string;
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "A bearer token is required",
                 *       "code": "UNAUTHENTICATED"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Forbidden */
        ForbiddenWithTusResumable: {
            headers: {
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "You may not do this",
                 *       "code": "FORBIDDEN"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Conflict */
        ConflictWithRetryAfterAndTusResumable: {
            headers: {
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                /** @description Seconds, if a request with the key is in progress */
                "Retry-After"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "This email address is already taken",
                 *       "code": "EMAIL_TAKEN"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Gone */
        GoneWithTusResumable: {
            headers: {
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "What the first request with this idempotency key has written was deleted since",
                 *       "code": "GONE"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Precondition Failed */
        PreconditionFailedWithTusResumableAndTusVersion: {
            headers: {
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                /** @description The versions of tus that are supported */
                "Tus-Version"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The resource is not in the state that the request expects",
                 *       "code": "PRECONDITION_FAILED"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Unprocessable Entity */
        UnprocessableEntityWithTusResumable: {
            headers: {
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The idempotency key was used for a different request",
                 *       "code": "IDEMPOTENCY_KEY_REUSED"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Locked */
        LockedWithTusResumable: {
            headers: {
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "Another request continues this upload now: ask for its offset with HEAD",
                 *       "code": "UPLOAD_TAKEN_OVER"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Too Many Requests */
        TooManyRequestsWithTusResumable: {
            headers: {
                /** @description Seconds until the client may try again */
                "Retry-After"?: string;
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "Too many attempts, try again later",
                 *       "code": "TOO_MANY_REQUESTS"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Checksum Mismatch */
        ChecksumMismatchWithTusResumable: {
            headers: {
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "The bytes do not have the checksum of Upload-Checksum: send them again",
                 *       "code": "CHECKSUM_MISMATCH"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Insufficient Storage */
        InsufficientStorageWithTusResumable: {
            headers: {
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "There is no space for the file",
                 *       "code": "STORAGE_FULL"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Not Found */
        NotFoundWithTusResumable: {
            headers: {
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "Not found",
                 *       "code": "NOT_FOUND"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Conflict */
        ConflictWithTusResumable: {
            headers: {
                /** @description The version of tus */
                "Tus-Resumable"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "error": "This email address is already taken",
                 *       "code": "EMAIL_TAKEN"
                 *     }
                 */
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    checkLiveness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The node is healthy */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    checkReadiness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The node is healthy */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listPublicKeys: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The public keys that verify access tokens */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["KeySet"];
                };
            };
            304: components["responses"]["NotModified"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listPasskeyOrigins: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The origins whose pages may use the passkeys of this domain */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RelatedOrigins"];
                };
            };
            304: components["responses"]["NotModified"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    logIn: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "email": "ada@example.com",
                 *       "password": "violet engine notes"
                 *     }
                 */
                "application/json": components["schemas"]["Login"];
            };
        };
        responses: {
            /** @description The login succeeded; the cookie establishes the session */
            200: {
                headers: {
                    /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoginReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["UnauthorizedOfLoginLoginFailure"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    refreshSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["TokenRequest"];
            };
        };
        responses: {
            /** @description The session was refreshed; the response has a new token and a new cookie */
            200: {
                headers: {
                    /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RefreshReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["UnauthorizedWithSetCookie"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFoundWithSetCookie"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerErrorWithSetCookie"];
            503: components["responses"]["ServiceUnavailableWithSetCookie"];
        };
    };
    logOut: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    getCurrentUser: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The user to whom the bearer token belongs */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Protected"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listSessions: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Sessions, newest first */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"][];
                };
            };
            304: components["responses"]["NotModified"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    endOtherSessions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    endSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listUserSessions: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Sessions, newest first */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"][];
                };
            };
            304: components["responses"]["NotModified"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    endUserSessions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    endUserSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                sessionId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TokenRequest"];
            };
        };
        responses: {
            /** @description Another access token of the session */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    getPasskeyCreationOptions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A `PublicKeyCredentialCreationOptionsJSON` */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PasskeyCreationOptions"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listPasskeys: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Passkeys, newest first */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Passkey"][];
                };
            };
            304: components["responses"]["NotModified"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    addPasskey: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the request repeatable for 24 hours: repeating it returns the same result and has no second effect */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Phone",
                 *       "credential": {
                 *         "id": "AAEC",
                 *         "rawId": "AAEC",
                 *         "type": "public-key",
                 *         "response": {
                 *           "clientDataJSON": "e30",
                 *           "attestationObject": "oA"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["AddPasskey"];
            };
        };
        responses: {
            /** @description A passkey with which its user can sign in */
            201: {
                headers: {
                    /** @description The path of the created resource */
                    Location?: string;
                    /** @description `true` for a repetition */
                    "Idempotency-Replayed"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Passkey"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["ConflictWithRetryAfter"];
            410: components["responses"]["Gone"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    removePasskey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    renamePasskey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Phone"
                 *     }
                 */
                "application/json": components["schemas"]["RenamePasskey"];
            };
        };
        responses: {
            /** @description A passkey with which its user can sign in */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Passkey"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listUserPasskeys: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Passkeys, newest first */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Passkey"][];
                };
            };
            304: components["responses"]["NotModified"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    removeUserPasskey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                passkeyId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    getPasskeyLoginOptions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A `PublicKeyCredentialRequestOptionsJSON`; the cookie binds the ceremony to the browser */
            200: {
                headers: {
                    /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PasskeyRequestOptions"];
                };
            };
            400: components["responses"]["BadRequest"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    logInByPasskey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "credential": {
                 *         "id": "AAEC",
                 *         "rawId": "AAEC",
                 *         "type": "public-key",
                 *         "response": {
                 *           "clientDataJSON": "e30",
                 *           "authenticatorData": "AA",
                 *           "signature": "AA"
                 *         }
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["PasskeyLogin"];
            };
        };
        responses: {
            /** @description The login succeeded; the cookie establishes the session */
            200: {
                headers: {
                    /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoginReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["UnauthorizedOfLogin"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    getStepUpOptions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A `PublicKeyCredentialRequestOptionsJSON`; the cookie binds the ceremony to the browser */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PasskeyRequestOptions"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listApiKeys: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description API keys that have not expired, newest first */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKey"][];
                };
            };
            304: components["responses"]["NotModified"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Deployment",
                 *       "actions": [
                 *         "posts:create"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["CreateApiKey"];
            };
        };
        responses: {
            /** @description The API key was created */
            201: {
                headers: {
                    /** @description The path of the created resource */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedApiKey"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    getApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An API key, without its secret */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKey"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deleteApiKey: {
        parameters: {
            query?: {
                /** @description Whether the links to uploads that were created with the key are revoked. Without it, they stay */
                revokeLinks?: boolean;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listUserApiKeys: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description API keys that have not expired, newest first */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKey"][];
                };
            };
            304: components["responses"]["NotModified"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createUserApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Deployment",
                 *       "actions": [
                 *         "posts:create"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["CreateApiKey"];
            };
        };
        responses: {
            /** @description The API key was created */
            201: {
                headers: {
                    /** @description The path of the created resource */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedApiKey"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    getUserApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                keyId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An API key, without its secret */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKey"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deleteUserApiKey: {
        parameters: {
            query?: {
                /** @description Whether the links to uploads that were created with the key are revoked. Without it, they stay */
                revokeLinks?: boolean;
            };
            header?: never;
            path: {
                id: string;
                keyId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    changePassword: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "currentPassword": "violet engine notes",
                 *       "password": "quiet lantern river"
                 *     }
                 */
                "application/json": components["schemas"]["ChangePassword"];
            };
        };
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    requestPasswordReset: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "email": "ada@example.com"
                 *     }
                 */
                "application/json": components["schemas"]["RequestPasswordReset"];
            };
        };
        responses: {
            /** @description Accepted; if the user is entitled to a link, it is mailed afterwards */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MailReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    checkPasswordReset: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "the-token-of-the-link"
                 *     }
                 */
                "application/json": components["schemas"]["CheckPasswordReset"];
            };
        };
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PasswordResetCheck"];
                };
            };
            400: components["responses"]["BadRequest"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    resetPassword: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "the-token-of-the-link",
                 *       "password": "violet engine notes"
                 *     }
                 */
                "application/json": components["schemas"]["ConfirmPasswordReset"];
            };
        };
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    inviteUser: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the request repeatable for 24 hours: repeating it returns the same result and has no second effect */
                "Idempotency-Key"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted; if the user is entitled to a link, it is mailed afterwards */
            202: {
                headers: {
                    /** @description `true` for a repetition */
                    "Idempotency-Replayed"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MailReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["ConflictWithRetryAfter"];
            410: components["responses"]["Gone"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listProviders: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The providers, in the order of the options */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Provider"][];
                };
            };
            304: components["responses"]["NotModified"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    startProviderLogin: {
        parameters: {
            query?: {
                /** @description Where the browser goes at the end: a path of this origin, or a URL of `publicUrl` or an allowed origin, of at most 2048 characters with those encoded that are not ASCII */
                returnTo?: string;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The header `Location` has the address to go to */
            303: {
                headers: {
                    /** @description The address to go to */
                    Location?: string;
                    /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    completeProviderLogin: {
        parameters: {
            query?: {
                /** @description What the start has sent to the provider */
                state?: string;
                /** @description The authorization code */
                code?: string;
                /** @description The issuer (RFC 9207) */
                iss?: string;
                /** @description Why the provider has not logged the user in */
                error?: string;
                /** @description What Apple says about the user the first time; left out if the address of the callback would have more than 12 KiB */
                user?: unknown;
            };
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The header `Location` has the address to go to */
            303: {
                headers: {
                    /** @description The address to go to */
                    Location?: string;
                    /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    receiveProviderForm: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "error": "access_denied"
                 *     }
                 */
                "application/x-www-form-urlencoded": components["schemas"]["ProviderResponse"];
            };
        };
        responses: {
            /** @description The header `Location` has the address to go to */
            303: {
                headers: {
                    /** @description The address to go to */
                    Location?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["UnauthorizedOfLogin"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    startProviderLink: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "returnTo": "/notes"
                 *     }
                 */
                "application/json": components["schemas"]["BeginProvider"];
            };
        };
        responses: {
            /** @description Where the page sends the browser */
            200: {
                headers: {
                    /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BegunProvider"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    startProviderJoin: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "the-token-of-the-link",
                 *       "returnTo": "/notes"
                 *     }
                 */
                "application/json": components["schemas"]["JoinByProvider"];
            };
        };
        responses: {
            /** @description Where the page sends the browser */
            200: {
                headers: {
                    /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BegunProvider"];
                };
            };
            400: components["responses"]["BadRequest"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    startProviderStepUp: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "returnTo": "/notes"
                 *     }
                 */
                "application/json": components["schemas"]["BeginProvider"];
            };
        };
        responses: {
            /** @description Where the page sends the browser */
            200: {
                headers: {
                    /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BegunProvider"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listIdentities: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Identities, newest first */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identity"][];
                };
            };
            304: components["responses"]["NotModified"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    removeIdentity: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listUserIdentities: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Identities, newest first */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identity"][];
                };
            };
            304: components["responses"]["NotModified"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    removeUserIdentity: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                identityId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    receiveProviderLogout: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "logout_token": "e30.e30.AA"
                 *     }
                 */
                "application/x-www-form-urlencoded": components["schemas"]["BackChannelLogout"];
            };
        };
        responses: {
            /** @description The sessions have ended */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoggedOut"];
                };
            };
            400: components["responses"]["BadRequest"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    completeLogin: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The challenge, and one of the other members */
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "challenge": "the-challenge-of-the-login",
                 *       "code": "123456"
                 *     }
                 */
                "application/json": components["schemas"]["CompleteLogin"];
            };
        };
        responses: {
            /** @description The login succeeded; the cookie establishes the session */
            200: {
                headers: {
                    /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoginReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["UnauthorizedOfLogin"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    stepUp: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description One of the members */
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "password": "violet engine notes"
                 *     }
                 */
                "application/json": components["schemas"]["StepUp"];
            };
        };
        responses: {
            /** @description The user is authenticated once more; the token belongs to the same session */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StepUpReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    getSecondFactors: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How the user proves to be the owner */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SecondFactor"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createTotp: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The secret for an authenticator app. It has no effect until a code confirms it */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewTotp"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    removeTotp: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    confirmTotp: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "code": "123456"
                 *     }
                 */
                "application/json": components["schemas"]["ConfirmTotp"];
            };
        };
        responses: {
            /** @description From now on, logins need a code */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConfirmedTotp"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createRecoveryCodes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description New codes; all earlier ones are void */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecoveryCodes"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    signUp: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Ada Lovelace",
                 *       "email": "ada@example.com",
                 *       "password": "violet engine notes"
                 *     }
                 */
                "application/json": components["schemas"]["SignUp"];
            };
        };
        responses: {
            /** @description Accepted; what happens depends on the address, and only its mailbox learns it */
            202: {
                headers: {
                    /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignUpReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    checkSignUp: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "the-token-of-the-link"
                 *     }
                 */
                "application/json": components["schemas"]["CheckSignUp"];
            };
        };
        responses: {
            /** @description Default Response */
            200: {
                headers: {
                    /** @description `true` if the confirmation must have a password */
                    "Password-Required"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignUpCheck"];
                };
            };
            400: components["responses"]["BadRequest"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    confirmSignUp: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "the-token-of-the-link",
                 *       "password": "violet engine notes"
                 *     }
                 */
                "application/json": components["schemas"]["ConfirmSignUp"];
            };
        };
        responses: {
            /** @description A user */
            201: {
                headers: {
                    /** @description The path of the created resource */
                    Location?: string;
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["User"];
                };
            };
            400: components["responses"]["BadRequestConfirmationErrors"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    requestLoginMail: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "email": "ada@example.com"
                 *     }
                 */
                "application/json": components["schemas"]["RequestLoginMail"];
            };
        };
        responses: {
            /** @description Accepted; if the address has an account, a link and a code are mailed afterwards */
            202: {
                headers: {
                    /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoginMailReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    checkLoginMail: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "the-token-of-the-link"
                 *     }
                 */
                "application/json": components["schemas"]["CheckLoginMail"];
            };
        };
        responses: {
            /** @description The link is valid, and stays so */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoginMailAccount"];
                };
            };
            400: components["responses"]["BadRequest"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    logInByMail: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The token of the link, or the code; without the cookie of the request, the code needs `loginId` */
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "code": "12345678"
                 *     }
                 */
                "application/json": components["schemas"]["ConfirmLoginMail"];
            };
        };
        responses: {
            /** @description The login succeeded; the cookie establishes the session */
            200: {
                headers: {
                    /** @description The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has */
                    "Set-Cookie"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoginReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["UnauthorizedOfLoginLoginFailure"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    requestStepUpMail: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted; a code is on its way to the address of the user */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StepUpMailReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    readSignInSettings: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What a login and a sign-up consist of in this service */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignInSettings"];
                };
            };
            304: components["responses"]["NotModified"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    requestEmailVerification: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted; if the user is entitled to a link, it is mailed afterwards */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MailReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    checkEmailVerification: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "the-token-of-the-link"
                 *     }
                 */
                "application/json": components["schemas"]["UseToken"];
            };
        };
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    /** @description `true` if the confirmation must have a password */
                    "Password-Required"?: string;
                    /** @description `true` if the confirmation needs a session of the user */
                    "Login-Required"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    verifyEmail: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "the-token-of-the-link"
                 *     }
                 */
                "application/json": components["schemas"]["ConfirmEmail"];
            };
        };
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequestConfirmationErrors"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    checkUndo: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "the-token-of-the-link"
                 *     }
                 */
                "application/json": components["schemas"]["UseToken"];
            };
        };
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    undoChange: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "the-token-of-the-link"
                 *     }
                 */
                "application/json": components["schemas"]["UseToken"];
            };
        };
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listUsers: {
        parameters: {
            query?: {
                /** @description Only users of this role */
                role?: string;
                /** @description Only the user with this address, regardless of case */
                email?: string;
                /** @description Only users of whose name or address some word begins with this, regardless of case */
                q?: string;
                /** @description Only users of this kind */
                kind?: "person" | "service";
                /** @description Only users who are disabled, or who are not. For admins */
                disabled?: boolean;
                /** @description Only users whose address is verified, or is not. For admins */
                emailVerified?: boolean;
                /** @description Only users who have an authenticator app, or who have none. For admins */
                secondFactor?: boolean;
                /** @description The order; `-` is for descending. By default -createdAt */
                sort?: "createdAt" | "-createdAt" | "name" | "-name" | "email" | "-email";
                /** @description Users per page */
                limit?: number;
                /** @description The cursor of the page, from the `Link` header of the previous page */
                after?: string;
                /** @description The members to return, separated by commas. `id` is always returned. By default all */
                fields?: string;
            };
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
                /** @description `handling=strict` rejects unknown parameters */
                Prefer?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Users, newest first */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    /** @description The path of the next page, with `rel="next"`, if there is one */
                    Link?: string;
                    /** @description `handling=strict`, if the request has preferred it */
                    "Preference-Applied"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": (components["schemas"]["User"] | components["schemas"]["UserPart"])[];
                    "application/vnd.api.v1+json": (components["schemas"]["User"] | components["schemas"]["UserPart"])[];
                    "application/vnd.api.v2+json": {
                        /** @description The version of this representation: "2" */
                        version: string;
                        data: (components["schemas"]["User"] | components["schemas"]["UserPart"])[];
                        page: {
                            /** @description Cursor of the next page */
                            next: string | null;
                            limit: number;
                        };
                    };
                };
            };
            304: components["responses"]["NotModifiedWithLinkAndPreferenceApplied"];
            400: components["responses"]["BadRequestWithPreferenceApplied"];
            401: components["responses"]["UnauthorizedWithPreferenceApplied"];
            403: components["responses"]["Forbidden"];
            406: components["responses"]["NotAcceptable"];
            412: components["responses"]["PreconditionFailedWithPreferenceApplied"];
            500: components["responses"]["InternalServerErrorWithPreferenceApplied"];
            503: components["responses"]["ServiceUnavailableWithPreferenceApplied"];
        };
    };
    createUser: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the request repeatable for 24 hours: repeating it returns the same result and has no second effect */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Ada Lovelace",
                 *       "email": "ada@example.com",
                 *       "role": "user",
                 *       "password": "violet engine notes"
                 *     }
                 */
                "application/json": components["schemas"]["CreateUser"];
            };
        };
        responses: {
            /** @description A user */
            201: {
                headers: {
                    /** @description The path of the created resource */
                    Location?: string;
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    /** @description `true` for a repetition */
                    "Idempotency-Replayed"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["User"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["ConflictWithRetryAfter"];
            410: components["responses"]["Gone"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    getUser: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A user */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["User"];
                };
            };
            304: components["responses"]["NotModified"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    replaceUser: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags. If none of them is the current one, the response is 412 and nothing changes */
                "if-match"?: string;
                /** @description Entity tags. If one of them is the current one, the response is 412 and nothing changes */
                "if-none-match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Ada Lovelace",
                 *       "email": "ada@example.com"
                 *     }
                 */
                "application/json": components["schemas"]["ReplaceUser"];
            };
        };
        responses: {
            /** @description A user */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["User"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deleteUser: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags. If none of them is the current one, the response is 412 and nothing changes */
                "if-match"?: string;
                /** @description Entity tags. If one of them is the current one, the response is 412 and nothing changes */
                "if-none-match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    updateUser: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags. If none of them is the current one, the response is 412 and nothing changes */
                "if-match"?: string;
                /** @description Entity tags. If one of them is the current one, the response is 412 and nothing changes */
                "if-none-match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Ada Lovelace"
                 *     }
                 */
                "application/merge-patch+json": components["schemas"]["PatchUser"];
                /**
                 * @example {
                 *       "name": "Ada Lovelace"
                 *     }
                 */
                "application/json": components["schemas"]["PatchUser"];
            };
        };
        responses: {
            /** @description A user */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["User"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaTypeWithAcceptPatch"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    exportUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Everything that is stored about the user */
            200: {
                headers: {
                    /** @description The name of the file, and whether a browser may show it */
                    "Content-Disposition"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserExport"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            404: components["responses"]["NotFound"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listOwnOrganizations: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The organisations of the authenticated user, newest membership first */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OwnOrganization"][];
                };
            };
            304: components["responses"]["NotModified"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listOrganizations: {
        parameters: {
            query?: {
                /** @description Only organisations whose name or slug begins with this */
                q?: string;
                /** @description Organisations per page */
                limit?: number;
                /** @description The cursor of the page, from the `Link` header of the previous page */
                after?: string;
            };
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Organisations, newest first */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    /** @description The path of the next page, with `rel="next"`, if there is one */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Organization"][];
                };
            };
            304: components["responses"]["NotModifiedWithLink"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createOrganization: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the request repeatable for 24 hours: repeating it returns the same result and has no second effect */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Analytical Engines",
                 *       "slug": "analytical-engines"
                 *     }
                 */
                "application/json": components["schemas"]["CreateOrganization"];
            };
        };
        responses: {
            /** @description An organisation */
            201: {
                headers: {
                    /** @description The path of the created resource */
                    Location?: string;
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    /** @description `true` for a repetition */
                    "Idempotency-Replayed"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Organization"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["ConflictWithRetryAfter"];
            410: components["responses"]["Gone"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    getOrganization: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An organisation */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Organization"];
                };
            };
            304: components["responses"]["NotModified"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deleteOrganization: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags. If none of them is the current one, the response is 412 and nothing changes */
                "if-match"?: string;
                /** @description Entity tags. If one of them is the current one, the response is 412 and nothing changes */
                "if-none-match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["ForbiddenWithWWWAuthenticate"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    updateOrganization: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags. If none of them is the current one, the response is 412 and nothing changes */
                "if-match"?: string;
                /** @description Entity tags. If one of them is the current one, the response is 412 and nothing changes */
                "if-none-match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Analytical Engines"
                 *     }
                 */
                "application/merge-patch+json": components["schemas"]["PatchOrganization"];
                /**
                 * @example {
                 *       "name": "Analytical Engines"
                 *     }
                 */
                "application/json": components["schemas"]["PatchOrganization"];
            };
        };
        responses: {
            /** @description An organisation */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Organization"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaTypeWithAcceptPatch"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listMembers: {
        parameters: {
            query?: {
                /** @description Only members with this role */
                role?: string;
                /** @description Only members of whose name some word begins with this, regardless of case */
                q?: string;
                /** @description Members per page */
                limit?: number;
                /** @description The cursor of the page, from the `Link` header of the previous page */
                after?: string;
            };
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Members, in the order in which their accounts were created */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    /** @description The path of the next page, with `rel="next"`, if there is one */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Member"][];
                };
            };
            304: components["responses"]["NotModifiedWithLink"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    addMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "userId": "01890a5d-ac96-774b-bcce-b302099a8057",
                 *       "role": "member"
                 *     }
                 */
                "application/json": components["schemas"]["AddMember"];
            };
        };
        responses: {
            /** @description A member of an organisation */
            201: {
                headers: {
                    /** @description The path of the created resource */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Member"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    getMember: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path: {
                id: string;
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A member of an organisation */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Member"];
                };
            };
            304: components["responses"]["NotModified"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    removeMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    updateMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                userId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "role": "admin"
                 *     }
                 */
                "application/merge-patch+json": components["schemas"]["PatchMember"];
                /**
                 * @example {
                 *       "role": "admin"
                 *     }
                 */
                "application/json": components["schemas"]["PatchMember"];
            };
        };
        responses: {
            /** @description A member of an organisation */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Member"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaTypeWithAcceptPatch"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listInvitations: {
        parameters: {
            query?: {
                /** @description Invitations per page */
                limit?: number;
                /** @description The cursor of the page, from the `Link` header of the previous page */
                after?: string;
            };
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Invitations that are pending, newest first */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    /** @description The path of the next page, with `rel="next"`, if there is one */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Invitation"][];
                };
            };
            304: components["responses"]["NotModifiedWithLink"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createInvitation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "email": "ada@example.com",
                 *       "role": "member"
                 *     }
                 */
                "application/json": components["schemas"]["CreateInvitation"];
            };
        };
        responses: {
            /** @description Accepted; if the user is entitled to a link, it is mailed afterwards */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MailReply"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    withdrawInvitation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                invitationId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    checkInvitation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "the-token-of-the-link"
                 *     }
                 */
                "application/json": components["schemas"]["UseToken"];
            };
        };
        responses: {
            /** @description The invitation can be accepted */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CheckedInvitation"];
                };
            };
            400: components["responses"]["BadRequest"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    acceptInvitation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "the-token-of-the-link"
                 *     }
                 */
                "application/json": components["schemas"]["AcceptInvitation"];
            };
        };
        responses: {
            /** @description The user is a member of the organisation */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcceptedInvitation"];
                };
            };
            400: components["responses"]["BadRequestConfirmationErrors"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    followPosts: {
        parameters: {
            query?: {
                /** @description Only posts of this user */
                authorId?: string;
                /** @description The cursor of a post, after which the list goes on */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Server-sent events, without end */
            200: {
                headers: {
                    /** @description The path of the next page, with `rel="next"`, if there is one */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            410: components["responses"]["Gone"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listDrafts: {
        parameters: {
            query?: {
                /** @description Drafts per page */
                limit?: number;
                /** @description The cursor of the page, from the `Link` header of the previous page */
                after?: string;
            };
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Your own drafts, newest first */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    /** @description The path of the next page, with `rel="next"`, if there is one */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Post"][];
                };
            };
            304: components["responses"]["NotModifiedWithLink"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listPosts: {
        parameters: {
            query?: {
                /** @description Only posts of this user */
                authorId?: string;
                /** @description Only posts that have all these words in their title or content, regardless of case. The last one may be the beginning of a word */
                q?: string;
                /** @description Only posts that were created at this time (RFC 3339) or later */
                since?: string;
                /** @description The order; `-` is for descending. By default -createdAt */
                sort?: "createdAt" | "-createdAt";
                /** @description Posts per page */
                limit?: number;
                /** @description The cursor of a post, after which the list goes on */
                after?: string;
            };
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
                /** @description `handling=strict` rejects unknown parameters */
                Prefer?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Posts, by default newest first */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    /** @description The path of the next page, with `rel="next"`, if there is one */
                    Link?: string;
                    /** @description `handling=strict`, if the request has preferred it */
                    "Preference-Applied"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Post"][];
                };
            };
            304: components["responses"]["NotModifiedWithLinkAndPreferenceApplied"];
            400: components["responses"]["BadRequestWithPreferenceApplied"];
            401: components["responses"]["UnauthorizedWithPreferenceApplied"];
            403: components["responses"]["Forbidden"];
            412: components["responses"]["PreconditionFailedWithPreferenceApplied"];
            500: components["responses"]["InternalServerErrorWithPreferenceApplied"];
            503: components["responses"]["ServiceUnavailableWithPreferenceApplied"];
        };
    };
    createPost: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the request repeatable for 24 hours: repeating it returns the same result and has no second effect */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "title": "Notes",
                 *       "content": "The engine weaves algebraic patterns."
                 *     }
                 */
                "application/json": components["schemas"]["CreatePost"];
            };
        };
        responses: {
            /** @description A post */
            201: {
                headers: {
                    /** @description The path of the created resource */
                    Location?: string;
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    /** @description `true` for a repetition */
                    "Idempotency-Replayed"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Post"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["ConflictWithRetryAfter"];
            410: components["responses"]["Gone"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    getPost: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A post */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Post"];
                };
            };
            304: components["responses"]["NotModified"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deletePost: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags. If none of them is the current one, the response is 412 and nothing changes */
                "if-match"?: string;
                /** @description Entity tags. If one of them is the current one, the response is 412 and nothing changes */
                "if-none-match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    updatePost: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags. If none of them is the current one, the response is 412 and nothing changes */
                "if-match"?: string;
                /** @description Entity tags. If one of them is the current one, the response is 412 and nothing changes */
                "if-none-match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "title": "Notes on the engine"
                 *     }
                 */
                "application/merge-patch+json": components["schemas"]["PatchPost"];
                /**
                 * @example {
                 *       "title": "Notes on the engine"
                 *     }
                 */
                "application/json": components["schemas"]["PatchPost"];
            };
        };
        responses: {
            /** @description A post */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Post"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaTypeWithAcceptPatch"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listAuditEntries: {
        parameters: {
            query?: {
                /** @description Only entries about the account of this user. Only an admin may name another user */
                user?: string;
                action?: "login" | "login.failed" | "login.second-factor-failed" | "login.mail-request" | "logout" | "step-up" | "step-up.failed" | "step-up.mail-request" | "session.refresh-reuse" | "session.end" | "password.change" | "password.change-failed" | "password.reset-request" | "password.reset" | "password.remove" | "user.create" | "user.sign-up" | "user.invite" | "user.import" | "user.email-change" | "user.email-verify" | "user.undo-change" | "user.role-change" | "user.disable" | "user.enable" | "user.delete" | "passkey.add" | "passkey.rename" | "passkey.remove" | "totp.add" | "totp.remove" | "api-key.add" | "api-key.remove" | "identity.add" | "identity.remove" | "recovery-codes.create" | "recovery-code.use" | "keys.rotate" | "backup.create" | "users.export" | "user.export" | "upload.read" | "upload.update" | "upload.delete" | "upload-link.create" | "upload-link.revoke" | "delivery.retry" | "delivery.discard" | "organization.create" | "organization.update" | "organization.delete" | "organization.invite" | "organization.withdraw-invitation" | "membership.add" | "membership.role-change" | "membership.remove" | "access.denied" | "access.throttled";
                /** @description Entries per page */
                limit?: number;
                /** @description The cursor of the page, from the `Link` header of the previous page */
                after?: string;
            };
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Entries, newest first */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    /** @description The path of the next page, with `rel="next"`, if there is one */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditEntry"][];
                };
            };
            304: components["responses"]["NotModifiedWithLink"];
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    getOverview: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What an admin has to know about the service */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Overview"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listSettings: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The settings of the node, in the order of its documentation; none if a host has mounted Usher */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Setting"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listAllApiKeys: {
        parameters: {
            query?: {
                /** @description Keys per page */
                limit?: number;
                /** @description The cursor of the page, from the `Link` header of the previous page */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description API keys of all users that have not expired, newest first */
            200: {
                headers: {
                    /** @description The path of the next page, with `rel="next"`, if there is one */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OwnedApiKey"][];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listFailedDeliveries: {
        parameters: {
            query?: {
                kind?: "event" | "mail";
                /** @description Deliveries per page */
                limit?: number;
                /** @description The cursor of the page, from the `Link` header of the previous page */
                after?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Deliveries, newest first */
            200: {
                headers: {
                    /** @description The path of the next page, with `rel="next"`, if there is one */
                    Link?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"][];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    retryDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deleteDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listUploads: {
        parameters: {
            query?: {
                /** @description Only uploads of this user, or `all` for those of every user. By default your own. Only an admin may name another user */
                user?: string;
                /** @description Uploads per page */
                limit?: number;
                /** @description The cursor of the page, from the `Link` header of the previous page */
                after?: string;
            };
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
                /** @description `handling=strict` rejects unknown parameters */
                Prefer?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Uploads, newest first */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    /** @description The path of the next page, with `rel="next"`, if there is one */
                    Link?: string;
                    /** @description `handling=strict`, if the request has preferred it */
                    "Preference-Applied"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UploadRecord"][];
                };
            };
            304: components["responses"]["NotModifiedWithLinkAndPreferenceApplied"];
            400: components["responses"]["BadRequestWithPreferenceApplied"];
            401: components["responses"]["UnauthorizedWithPreferenceApplied"];
            403: components["responses"]["Forbidden"];
            412: components["responses"]["PreconditionFailedWithPreferenceApplied"];
            500: components["responses"]["InternalServerErrorWithPreferenceApplied"];
            503: components["responses"]["ServiceUnavailableWithPreferenceApplied"];
        };
    };
    createUpload: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the request repeatable for 24 hours: repeating it returns the same result and has no second effect */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "multipart/form-data": components["schemas"]["UploadForm"];
            };
        };
        responses: {
            /** @description The file and its record are stored */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    /** @description `true` for a repetition */
                    "Idempotency-Replayed"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Upload"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["ConflictWithRetryAfter"];
            410: components["responses"]["Gone"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableEntity"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
            507: components["responses"]["InsufficientStorage"];
        };
    };
    getUploadUsage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What the uploads of the actor take, and may take */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UploadUsage"];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    downloadUpload: {
        parameters: {
            query?: {
                /** @description The secret of a link, which is in its `url` */
                link?: string;
            };
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
                /** @description The bytes to read, such as `bytes=0-1023` */
                Range?: string;
                /** @description The entity tag or date of the version that the client has. If it is not the current one, the response is 200 */
                "If-Range"?: string;
                /** @description A date. The response is 304 without a body if nothing has changed since */
                "If-Modified-Since"?: string;
                /** @description A date. The response is 412 if anything has changed since */
                "If-Unmodified-Since"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The bytes */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    /** @description `bytes`: ranges can be requested */
                    "Accept-Ranges"?: string;
                    /** @description When the file was uploaded */
                    "Last-Modified"?: string;
                    /** @description The name of the file, and whether a browser may show it */
                    "Content-Disposition"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
            /** @description A range of the bytes */
            206: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    /** @description `bytes`: ranges can be requested */
                    "Accept-Ranges"?: string;
                    /** @description When the file was uploaded */
                    "Last-Modified"?: string;
                    /** @description The name of the file, and whether a browser may show it */
                    "Content-Disposition"?: string;
                    /** @description Which bytes these are, and how many there are */
                    "Content-Range"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "*/*": string;
                };
            };
            304: components["responses"]["NotModifiedWithAcceptRangesAndContentDispositionAndLastModified"];
            /** @description The bytes are at `Location` for some seconds, if the option `s3.redirectSeconds` is set */
            307: {
                headers: {
                    /** @description The address of the bytes, which works for some seconds */
                    Location?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            416: components["responses"]["RangeNotSatisfiableWithContentRange"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    deleteUpload: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags. If none of them is the current one, the response is 412 and nothing changes */
                "if-match"?: string;
                /** @description Entity tags. If one of them is the current one, the response is 412 and nothing changes */
                "if-none-match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    updateUpload: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags. If none of them is the current one, the response is 412 and nothing changes */
                "if-match"?: string;
                /** @description Entity tags. If one of them is the current one, the response is 412 and nothing changes */
                "if-none-match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "description": "A greeting"
                 *     }
                 */
                "application/merge-patch+json": components["schemas"]["PatchUpload"];
                /**
                 * @example {
                 *       "description": "A greeting"
                 *     }
                 */
                "application/json": components["schemas"]["PatchUpload"];
            };
        };
        responses: {
            /** @description An upload, without its bytes */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UploadRecord"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaTypeWithAcceptPatch"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    getUpload: {
        parameters: {
            query?: never;
            header?: {
                /** @description Entity tags that the client has. If one of them is the current one, the response is 304 without a body */
                "If-None-Match"?: string;
                /** @description Entity tags. The response is 412 if none of them is the current one */
                "If-Match"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An upload, without its bytes */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UploadRecord"];
                };
            };
            304: components["responses"]["NotModified"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            412: components["responses"]["PreconditionFailed"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listUploadLinks: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Links that have not expired, newest first */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UploadLink"][];
                };
            };
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    createUploadLink: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "seconds": 86400,
                 *       "name": "For Grace"
                 *     }
                 */
                "application/json": components["schemas"]["CreateUploadLink"];
            };
        };
        responses: {
            /** @description The link works */
            201: {
                headers: {
                    /** @description The path of the created resource */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewUploadLink"];
                };
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    revokeUploadLink: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
                linkId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequest"];
            401: components["responses"]["Unauthorized"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            408: components["responses"]["RequestTimeout"];
            413: components["responses"]["PayloadTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
    listResumableUploads: {
        parameters: {
            query?: never;
            header?: {
                /** @description `1.0.0`; 412 otherwise */
                "Tus-Resumable"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Unfinished uploads, newest first */
            200: {
                headers: {
                    /** @description The version of tus */
                    "Tus-Resumable"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResumableUpload"][];
                };
            };
            401: components["responses"]["UnauthorizedWithTusResumable"];
            403: components["responses"]["ForbiddenWithTusResumable"];
            412: components["responses"]["PreconditionFailedWithTusResumableAndTusVersion"];
            500: components["responses"]["InternalServerErrorWithTusResumable"];
            503: components["responses"]["ServiceUnavailableWithTusResumable"];
        };
    };
    createResumableUpload: {
        parameters: {
            query?: never;
            header?: {
                /** @description `1.0.0`; 412 otherwise */
                "Tus-Resumable"?: string;
                /** @description How many bytes the file has. Required */
                "Upload-Length"?: string;
                /** @description Pairs of a key, a space and a value in Base64, with commas: `filename`, `description` and `visibility` */
                "Upload-Metadata"?: string;
                /** @description `sha1` or `sha256`, a space, and the checksum of the body in Base64; 460 if it differs */
                "Upload-Checksum"?: string;
                /** @description Makes the request repeatable for 24 hours: repeating it returns the same result and has no second effect */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        /** @description Bytes of the file */
        requestBody: {
            content: {
                "application/offset+octet-stream": string;
            };
        };
        responses: {
            /** @description An upload that arrives in several requests */
            201: {
                headers: {
                    /** @description The path of the created resource */
                    Location?: string;
                    /** @description The version of tus */
                    "Tus-Resumable"?: string;
                    /** @description How many bytes of the upload are stored durably */
                    "Upload-Offset"?: string;
                    /** @description Until when the upload may be continued */
                    "Upload-Expires"?: string;
                    /** @description `true` for a repetition */
                    "Idempotency-Replayed"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResumableUpload"];
                };
            };
            400: components["responses"]["BadRequestWithTusResumable"];
            401: components["responses"]["UnauthorizedWithTusResumable"];
            403: components["responses"]["ForbiddenWithTusResumable"];
            408: components["responses"]["RequestTimeoutWithTusResumable"];
            409: components["responses"]["ConflictWithRetryAfterAndTusResumable"];
            410: components["responses"]["GoneWithTusResumable"];
            412: components["responses"]["PreconditionFailedWithTusResumableAndTusVersion"];
            413: components["responses"]["PayloadTooLargeWithTusResumable"];
            415: components["responses"]["UnsupportedMediaTypeWithTusResumable"];
            422: components["responses"]["UnprocessableEntityWithTusResumable"];
            423: components["responses"]["LockedWithTusResumable"];
            429: components["responses"]["TooManyRequestsWithTusResumable"];
            460: components["responses"]["ChecksumMismatchWithTusResumable"];
            500: components["responses"]["InternalServerErrorWithTusResumable"];
            503: components["responses"]["ServiceUnavailableWithTusResumable"];
            507: components["responses"]["InsufficientStorageWithTusResumable"];
        };
    };
    getResumableUploadSupport: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    /** @description The version of tus */
                    "Tus-Resumable"?: string;
                    /** @description The versions of tus that are supported */
                    "Tus-Version"?: string;
                    /** @description The extensions of tus that are supported */
                    "Tus-Extension"?: string;
                    /** @description The algorithms that `Upload-Checksum` may name */
                    "Tus-Checksum-Algorithm"?: string;
                    /** @description How many bytes an upload may have */
                    "Tus-Max-Size"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequestWithTusResumable"];
            408: components["responses"]["RequestTimeoutWithTusResumable"];
            413: components["responses"]["PayloadTooLargeWithTusResumable"];
            415: components["responses"]["UnsupportedMediaTypeWithTusResumable"];
            500: components["responses"]["InternalServerErrorWithTusResumable"];
            503: components["responses"]["ServiceUnavailableWithTusResumable"];
        };
    };
    getResumableUpload: {
        parameters: {
            query?: never;
            header?: {
                /** @description `1.0.0`; 412 otherwise */
                "Tus-Resumable"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An upload that arrives in several requests */
            200: {
                headers: {
                    /** @description The version of tus */
                    "Tus-Resumable"?: string;
                    /** @description How many bytes of the upload are stored durably */
                    "Upload-Offset"?: string;
                    /** @description How many bytes the upload will have */
                    "Upload-Length"?: string;
                    /** @description Until when the upload may be continued */
                    "Upload-Expires"?: string;
                    /** @description What was sent when the upload began */
                    "Upload-Metadata"?: string;
                    /** @description The path of the record of the finished upload */
                    "Content-Location"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ResumableUpload"];
                };
            };
            401: components["responses"]["UnauthorizedWithTusResumable"];
            403: components["responses"]["ForbiddenWithTusResumable"];
            404: components["responses"]["NotFoundWithTusResumable"];
            412: components["responses"]["PreconditionFailedWithTusResumableAndTusVersion"];
            500: components["responses"]["InternalServerErrorWithTusResumable"];
            503: components["responses"]["ServiceUnavailableWithTusResumable"];
        };
    };
    deleteResumableUpload: {
        parameters: {
            query?: never;
            header?: {
                /** @description `1.0.0`; 412 otherwise */
                "Tus-Resumable"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done; the response has no body */
            204: {
                headers: {
                    /** @description The version of tus */
                    "Tus-Resumable"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequestWithTusResumable"];
            401: components["responses"]["UnauthorizedWithTusResumable"];
            403: components["responses"]["ForbiddenWithTusResumable"];
            404: components["responses"]["NotFoundWithTusResumable"];
            408: components["responses"]["RequestTimeoutWithTusResumable"];
            412: components["responses"]["PreconditionFailedWithTusResumableAndTusVersion"];
            413: components["responses"]["PayloadTooLargeWithTusResumable"];
            415: components["responses"]["UnsupportedMediaTypeWithTusResumable"];
            500: components["responses"]["InternalServerErrorWithTusResumable"];
            503: components["responses"]["ServiceUnavailableWithTusResumable"];
        };
    };
    continueResumableUpload: {
        parameters: {
            query?: never;
            header?: {
                /** @description `1.0.0`; 412 otherwise */
                "Tus-Resumable"?: string;
                /** @description Where the bytes begin: the offset of the upload. Required */
                "Upload-Offset"?: string;
                /** @description `sha1` or `sha256`, a space, and the checksum of the body in Base64; 460 if it differs */
                "Upload-Checksum"?: string;
            };
            path: {
                id: string;
            };
            cookie?: never;
        };
        /** @description Bytes of the file */
        requestBody: {
            content: {
                "application/offset+octet-stream": string;
            };
        };
        responses: {
            /** @description The file and its record are stored */
            200: {
                headers: {
                    /** @description The entity tag of the current version */
                    ETag?: string;
                    /** @description The version of tus */
                    "Tus-Resumable"?: string;
                    /** @description How many bytes of the upload are stored durably */
                    "Upload-Offset"?: string;
                    /** @description Until when the upload may be continued */
                    "Upload-Expires"?: string;
                    /** @description The path of the record of the finished upload */
                    "Content-Location"?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Upload"];
                };
            };
            /** @description Done; the response has no body */
            204: {
                headers: {
                    /** @description The version of tus */
                    "Tus-Resumable"?: string;
                    /** @description How many bytes of the upload are stored durably */
                    "Upload-Offset"?: string;
                    /** @description Until when the upload may be continued */
                    "Upload-Expires"?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["BadRequestWithTusResumable"];
            401: components["responses"]["UnauthorizedWithTusResumable"];
            403: components["responses"]["ForbiddenWithTusResumable"];
            404: components["responses"]["NotFoundWithTusResumable"];
            408: components["responses"]["RequestTimeoutWithTusResumable"];
            409: components["responses"]["ConflictWithTusResumable"];
            412: components["responses"]["PreconditionFailedWithTusResumableAndTusVersion"];
            413: components["responses"]["PayloadTooLargeWithTusResumable"];
            415: components["responses"]["UnsupportedMediaTypeWithTusResumable"];
            423: components["responses"]["LockedWithTusResumable"];
            460: components["responses"]["ChecksumMismatchWithTusResumable"];
            500: components["responses"]["InternalServerErrorWithTusResumable"];
            503: components["responses"]["ServiceUnavailableWithTusResumable"];
            507: components["responses"]["InsufficientStorageWithTusResumable"];
        };
    };
    redirect: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The header `Location` has the address of the users list */
            302: {
                headers: {
                    /** @description The address to go to */
                    Location?: string;
                    [name: string]: unknown;
                };
                content?: never;
            };
            500: components["responses"]["InternalServerError"];
            503: components["responses"]["ServiceUnavailable"];
        };
    };
}
