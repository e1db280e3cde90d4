/** The texts of mails in English. Those of the other languages have the same members and placeholders. */
export const en = {
  common: {
    fallback: 'If the button does not work, use this link:',
    undoButton: 'Undo the change',
    undoAdded: 'If it was not you, use this link within {{duration}}. It removes what was added since, restores the ' +
      'address and the password from before, and logs everybody out.',
    noUndo: 'If you did not expect this, contact the people who run {{productName}}: this mail has no link with ' +
      'which you could undo it.',
    resetNow: 'If it was not you, somebody else may use your account: request a link to set a new password at once.',
    linksLeadTo: 'Such links lead to {{page}}',
    waysIntro: 'What can log in to it besides a password, with the days on which it was added:',
    waysPasskeys: 'Passkeys: {{passkeys}}',
    waysApp: 'Authenticator app: {{app}}',
    waysIdentities: 'Linked accounts: {{identities}}',
    waysKeys: 'API keys: {{keys}}',
    waysNone: 'Nothing else.',
    waysForeign: 'If any of it is not yours, request a link to set a new password at once.',
    severalChanges: 'Several changes of your account',
    moreChanges: 'There were more changes like this one, which are not listed here.',
  },
  'password-reset': {
    subject: 'Set a new password',
    text: 'Somebody, most likely you, requested a link to set a new password for your account. It works once, ' +
      'within {{duration}}.',
    button: 'Set a new password',
    after: 'If it was not you, do nothing. Your password stays as it is.',
  },
  invitation: {
    subject: 'You have an account: set its password',
    text: 'An account was created for you. Set its password with this link, which works once, within {{duration}}.',
    button: 'Set the password',
    after: 'Then log in with this address and that password.',
  },
  'organization-invitation': {
    subject: 'You are invited to an organisation',
    text: 'You are invited to join {{organization}}. This link works once, within {{duration}}.',
    button: 'See the invitation',
    after: 'If you do not know who has invited you, ignore this mail.',
  },
  'password-changed': {
    subject: 'Your password was set',
    text: 'The password of your account was set just now, and you are logged out everywhere else.',
    undo: 'If it was not you, use this link within {{duration}}. It restores the password from before the change, ' +
      'and logs everybody out.',
    after: 'You can also request a link to set a new password.',
    otherwise: 'If it was not you, request a link to set a new password at once.',
  },
  'sign-up': {
    subject: 'Confirm your account',
    text: 'Somebody, most likely you, signed up with this address. Create the account with this link, which works ' +
      'once, within {{duration}}.',
    button: 'Create the account',
    after: 'If this was not you, ignore this mail: nothing happens.',
  },
  'sign-up-taken': {
    subject: 'You already have an account',
    text: 'Somebody, most likely you, signed up with this address, but there is an account with it already.',
    button: 'Log in',
    forgot: 'If you have forgotten the password, set a new one:',
    after: 'If it was not you, do nothing. Your account stays as it is.',
  },
  'verify-email': {
    subject: 'Confirm your e-mail address',
    text: 'Confirm with this link, within {{duration}}, that this is the e-mail address of your account.',
    button: 'Confirm the address',
    after: 'If you have no account, do nothing.',
  },
  'email-changed': {
    subject: 'The e-mail address of your account was changed',
    text: 'The e-mail address of your account was changed. From now on, mails go to the new address.',
    undo: 'If it was not you, use this link within {{duration}}. It restores this address and the password from ' +
      'before the change, and logs everybody out.',
    after: 'If somebody else may know that password, set a new one afterwards.',
  },
  'passkey-added': {
    subject: 'A passkey was added to your account',
    text: 'A passkey was added to your account just now. Whoever has it can log in without a password.',
  },
  'passkey-removed': {
    subject: 'A passkey was removed from your account',
    text: 'A passkey was removed from your account just now. Nobody can log in with it any more.',
  },
  'api-key-added': {
    subject: 'An API key was created for your account',
    text: 'An API key was created for your account just now. Whoever has it can act in your name until it is deleted ' +
      'or expires.',
  },
  'api-key-removed': {
    subject: 'An API key of your account was deleted',
    text: 'An API key of your account was deleted just now. Programs that use it are rejected.',
  },
  'identity-added': {
    subject: 'A way to log in was added to your account',
    text: 'Your account can be used with an account at {{provider}} since just now. Whoever has that one can log in ' +
      'without a password.',
  },
  'identity-removed': {
    subject: 'A way to log in was removed from your account',
    text: 'An account at a provider was removed from your account just now. Nobody can log in with it any more.',
  },
  'totp-added': {
    subject: 'An authenticator app was added to your account',
    text: 'An authenticator app was added to your account just now. From now on, a login also needs a code of the ' +
      'app, or a recovery code.',
    after: 'Then request a link to set a new password.',
    otherwise: 'If it was not you, request a link to set a new password at once.',
  },
  'totp-removed': {
    subject: 'The authenticator app was removed from your account',
    text: 'The authenticator app was removed from your account just now, with the recovery codes. A login no longer ' +
      'needs a code.',
    after: 'If it was neither you nor the people who run {{productName}} on your request, request a link to set a ' +
      'new password at once.',
  },
  'recovery-codes-created': {
    subject: 'New recovery codes were created for your account',
    text: 'New recovery codes were created for your account just now. The former ones no longer work.',
    after: 'The former recovery codes that were not used work again then.',
  },
  'recovery-code-used': {
    subject: 'A recovery code of your account was used',
    text: 'A recovery code of your account was used just now, in place of the authenticator app.',
    after: 'If it was not you, somebody has your recovery codes: request a link to set a new password at once, and ' +
      'create new recovery codes afterwards.',
  },
  login: {
    subject: 'Log in to your account',
    text: 'Somebody, most likely you, wants to log in to your account. Open this link, which works once, within ' +
      '{{duration}}.',
    button: 'Log in',
    codeHint: 'Or enter this code on the page that asked for your address, in the same browser:',
    after: 'If it was not you, do nothing: without this mail, nobody gets in. Never tell the code to anybody, and ' +
      'never pass the link on.',
  },
  'step-up': {
    subject: 'Your code to confirm that it is you',
    text: 'Somebody who is logged in to your account, most likely you, has to confirm a change. Enter this code where ' +
      'you were asked for it, within {{duration}}:',
    after: 'If it was not you, somebody else uses your account: end all sessions on your account page, and tell the ' +
      'code to nobody.',
  },
  'ways-removed': {
    subject: 'The earlier password of your account is removed',
    text: 'You have just confirmed that this address is yours. Nobody had done that before, so somebody else may have ' +
      'set up your account. That is why everything from before is removed: the password, passkeys, an authenticator ' +
      'app, linked accounts, API keys, and all sessions.',
    after: 'Your account and what is in it remain. If you want to log in with a password, request a link to set one ' +
      'at {{page}}',
  },
  'account-promoted': {
    subject: 'Your account is an admin now',
    text: 'Your account got the role admin just now. Whoever can log in to it can do everything.',
  },
  'role-granted': {
    subject: 'Your account has another role now',
    text: 'Your account got the role {{role}} just now. Whoever can log in to it can do what this role permits.',
  },
  'account-enabled': {
    subject: 'Your account can be used again',
    text: 'Your account was enabled again just now. Whoever can log in to it can use it.',
  },
  'account-deleted': {
    subject: 'Your account was deleted',
    text: 'Your account was deleted just now, with everything that was stored in it. This cannot be undone, and you ' +
      'get no further mails.',
    after: 'If it was not you, somebody else was logged in as you: tell the people who run {{productName}}, and ' +
      'change the password of your mailbox.',
  },
} as const satisfies Record<string, Record<string, string>>

/** The texts of all mails in one language. */
export type MailTexts = { readonly [Mail in keyof typeof en]: { readonly [Text in keyof typeof en[Mail]]: string } }
