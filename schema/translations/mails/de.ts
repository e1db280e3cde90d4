import type { MailTexts } from './en.ts'

export const de: MailTexts = {
  common: {
    fallback: 'Falls die Schaltfläche nicht funktioniert, öffnen Sie diesen Link:',
    undoButton: 'Änderung rückgängig machen',
    undoAdded: 'Falls Sie das nicht waren, öffnen Sie diesen Link. Er gilt {{duration}}, entfernt alles, was seitdem ' +
      'hinzugefügt wurde, stellt die vorherige Adresse und das vorherige Passwort wieder her und meldet alle ab.',
    noUndo: 'Falls Sie das nicht erwartet haben, wenden Sie sich an die Betreiber von {{productName}}: Mit dieser ' +
      'E-Mail lässt sich die Änderung nicht rückgängig machen.',
    resetNow: 'Falls Sie das nicht waren, benutzt vielleicht jemand anderes Ihr Konto: Fordern Sie sofort einen Link ' +
      'an, um ein neues Passwort festzulegen.',
    linksLeadTo: 'Solche Links führen zu {{page}}',
    waysIntro: 'Womit man sich außer mit einem Passwort anmelden kann, mit dem Tag, an dem es hinzugefügt ' +
      'wurde:',
    waysPasskeys: 'Ihre Passkeys: {{passkeys}}',
    waysApp: 'Authenticator-App: {{app}}',
    waysIdentities: 'Verknüpfte Konten: {{identities}}',
    waysKeys: 'API-Schlüssel: {{keys}}',
    waysNone: 'Sonst nichts.',
    waysForeign: 'Wenn etwas davon nicht Ihnen gehört, fordern Sie sofort einen Link an, um ein neues ' +
      'Passwort festzulegen.',
    severalChanges: 'Mehrere Änderungen an Ihrem Konto',
    moreChanges: 'Es gab weitere Änderungen dieser Art, die hier nicht aufgeführt sind.',
  },
  'password-reset': {
    subject: 'Neues Passwort festlegen',
    text: 'Jemand, vermutlich Sie, hat einen Link angefordert, um ein neues Passwort für Ihr Konto festzulegen. Er ' +
      'funktioniert einmal und gilt {{duration}}.',
    button: 'Neues Passwort festlegen',
    after: 'Falls Sie das nicht waren, brauchen Sie nichts zu tun. Ihr Passwort bleibt, wie es ist.',
  },
  invitation: {
    subject: 'Sie haben ein Konto: Legen Sie das Passwort fest',
    text: 'Für Sie wurde ein Konto angelegt. Legen Sie mit diesem Link das Passwort fest. Er funktioniert einmal und ' +
      'gilt {{duration}}.',
    button: 'Passwort festlegen',
    after: 'Melden Sie sich danach mit dieser Adresse und dem Passwort an.',
  },
  'organization-invitation': {
    subject: 'Sie sind in eine Organisation eingeladen',
    text: 'Sie sind eingeladen, {{organization}} beizutreten. Dieser Link funktioniert einmal, innerhalb von {{duration}}.',
    button: 'Einladung ansehen',
    after: 'Wenn Sie nicht wissen, wer Sie eingeladen hat, beachten Sie diese Nachricht nicht.',
  },
  'password-changed': {
    subject: 'Ihr Passwort wurde geändert',
    text: 'Das Passwort Ihres Kontos wurde gerade geändert, und Sie wurden überall sonst abgemeldet.',
    undo: 'Falls Sie das nicht waren, öffnen Sie diesen Link. Er gilt {{duration}}, stellt das vorherige Passwort ' +
      'wieder her und meldet alle ab.',
    after: 'Sie können auch einen Link anfordern, um ein neues Passwort festzulegen.',
    otherwise: 'Falls Sie das nicht waren, fordern Sie sofort einen Link an, um ein neues Passwort festzulegen.',
  },
  'sign-up': {
    subject: 'Bestätigen Sie Ihr Konto',
    text: 'Jemand, vermutlich Sie, hat sich mit dieser Adresse registriert. Legen Sie das Konto mit diesem Link an. ' +
      'Er funktioniert einmal und gilt {{duration}}.',
    button: 'Konto anlegen',
    after: 'Falls Sie das nicht waren, ignorieren Sie diese E-Mail: Dann passiert nichts.',
  },
  'sign-up-taken': {
    subject: 'Sie haben bereits ein Konto',
    text: 'Jemand, vermutlich Sie, wollte sich mit dieser Adresse registrieren. Dazu gibt es aber schon ein Konto.',
    button: 'Anmelden',
    forgot: 'Falls Sie das Passwort vergessen haben, legen Sie ein neues fest:',
    after: 'Falls Sie das nicht waren, brauchen Sie nichts zu tun. Ihr Konto bleibt, wie es ist.',
  },
  'verify-email': {
    subject: 'Bestätigen Sie Ihre E-Mail-Adresse',
    text: 'Bestätigen Sie mit diesem Link, dass dies die E-Mail-Adresse Ihres Kontos ist. Er gilt {{duration}}.',
    button: 'Adresse bestätigen',
    after: 'Falls Sie kein Konto haben, brauchen Sie nichts zu tun.',
  },
  'email-changed': {
    subject: 'Die E-Mail-Adresse Ihres Kontos wurde geändert',
    text: 'Die E-Mail-Adresse Ihres Kontos wurde geändert. Ab jetzt gehen E-Mails an die neue Adresse.',
    undo: 'Falls Sie das nicht waren, öffnen Sie diesen Link. Er gilt {{duration}}, stellt diese Adresse und das ' +
      'vorherige Passwort wieder her und meldet alle ab.',
    after: 'Falls jemand anderes dieses Passwort kennen könnte, legen Sie danach ein neues fest.',
  },
  'passkey-added': {
    subject: 'Ihrem Konto wurde ein Passkey hinzugefügt',
    text: 'Ihrem Konto wurde gerade ein Passkey hinzugefügt. Wer ihn hat, kann sich ohne Passwort anmelden.',
  },
  'passkey-removed': {
    subject: 'Ein Passkey wurde aus Ihrem Konto entfernt',
    text: 'Ein Passkey wurde gerade aus Ihrem Konto entfernt. Damit kann sich niemand mehr anmelden.',
  },
  'api-key-added': {
    subject: 'Für Ihr Konto wurde ein API-Schlüssel erstellt',
    text: 'Für Ihr Konto wurde gerade ein API-Schlüssel erstellt. Wer ihn hat, kann in Ihrem Namen handeln, bis er ' +
      'gelöscht wird oder abläuft.',
  },
  'api-key-removed': {
    subject: 'Ein API-Schlüssel Ihres Kontos wurde gelöscht',
    text: 'Ein API-Schlüssel Ihres Kontos wurde gerade gelöscht. Programme, die ihn verwenden, werden abgewiesen.',
  },
  'identity-added': {
    subject: 'Ihrem Konto wurde ein Anmeldeweg hinzugefügt',
    text: 'Ihr Konto ist seit eben mit einem Konto bei {{provider}} verknüpft. Wer dieses Konto hat, kann sich ohne ' +
      'Passwort anmelden.',
  },
  'identity-removed': {
    subject: 'Ein Anmeldeweg wurde aus Ihrem Konto entfernt',
    text: 'Die Verknüpfung mit dem Konto eines anderen Anbieters wurde gerade entfernt. Damit kann sich niemand mehr ' +
      'anmelden.',
  },
  'totp-added': {
    subject: 'Ihrem Konto wurde eine Authenticator-App hinzugefügt',
    text: 'Ihrem Konto wurde gerade eine Authenticator-App hinzugefügt. Ab jetzt braucht eine Anmeldung zusätzlich ' +
      'einen Code der App oder einen Wiederherstellungscode.',
    after: 'Fordern Sie danach einen Link an, um ein neues Passwort festzulegen.',
    otherwise: 'Falls Sie das nicht waren, fordern Sie sofort einen Link an, um ein neues Passwort festzulegen.',
  },
  'totp-removed': {
    subject: 'Die Authenticator-App wurde aus Ihrem Konto entfernt',
    text: 'Die Authenticator-App wurde gerade aus Ihrem Konto entfernt, zusammen mit den Wiederherstellungscodes. ' +
      'Eine Anmeldung braucht keinen Code mehr.',
    after: 'Falls weder Sie das waren noch in Ihrem Auftrag die Betreiber von {{productName}}, fordern Sie sofort ' +
      'einen Link an, um ein neues Passwort festzulegen.',
  },
  'recovery-codes-created': {
    subject: 'Für Ihr Konto wurden neue Wiederherstellungscodes erstellt',
    text: 'Für Ihr Konto wurden gerade neue Wiederherstellungscodes erstellt. Die bisherigen gelten nicht mehr.',
    after: 'Die bisherigen Wiederherstellungscodes, die nicht benutzt wurden, gelten dann wieder.',
  },
  'recovery-code-used': {
    subject: 'Ein Wiederherstellungscode Ihres Kontos wurde benutzt',
    text: 'Anstelle der Authenticator-App wurde gerade ein Wiederherstellungscode Ihres Kontos benutzt.',
    after: 'Falls Sie das nicht waren, hat jemand Ihre Wiederherstellungscodes: Fordern Sie sofort einen Link an, um ' +
      'ein neues Passwort festzulegen, und erstellen Sie danach neue Codes.',
  },
  login: {
    subject: 'In Ihrem Konto anmelden',
    text: 'Jemand, vermutlich Sie, möchte sich in Ihrem Konto anmelden. Öffnen Sie diesen Link. Er funktioniert ' +
      'einmal und gilt {{duration}}.',
    button: 'Anmelden',
    codeHint: 'Oder geben Sie diesen Code auf der Seite ein, die nach Ihrer Adresse gefragt hat, im selben Browser:',
    after: 'Falls Sie das nicht waren, brauchen Sie nichts zu tun: Ohne diese E-Mail kommt niemand hinein. Nennen Sie ' +
      'den Code niemandem, und geben Sie den Link nicht weiter.',
  },
  'step-up': {
    subject: 'Ihr Code zur Bestätigung, dass Sie es sind',
    text: 'Jemand, der in Ihrem Konto angemeldet ist, vermutlich Sie, muss eine Änderung bestätigen. Geben Sie diesen ' +
      'Code dort ein, wo danach gefragt wird. Er gilt {{duration}}:',
    after: 'Falls Sie das nicht waren, benutzt jemand anderes Ihr Konto: Beenden Sie auf der Seite Ihres Kontos alle ' +
      'Sitzungen, und nennen Sie den Code niemandem.',
  },
  'ways-removed': {
    subject: 'Das frühere Passwort Ihres Kontos wurde entfernt',
    text: 'Sie haben gerade bestätigt, dass diese Adresse Ihnen gehört. Das hatte vorher niemand getan, also hat ' +
      'vielleicht jemand anderes Ihr Konto eingerichtet. Deshalb wurde alles von vorher entfernt: Passwort, Passkeys, ' +
      'Authenticator-App, verknüpfte Konten, API-Schlüssel und alle Sitzungen.',
    after: 'Ihr Konto und sein Inhalt bleiben. Wenn Sie sich mit einem Passwort anmelden möchten, fordern Sie einen ' +
      'Link an unter {{page}}',
  },
  'account-promoted': {
    subject: 'Ihr Konto hat jetzt die Rolle Admin',
    text: 'Ihr Konto hat gerade die Rolle Admin erhalten. Wer sich damit anmelden kann, darf alles.',
  },
  'role-granted': {
    subject: 'Ihr Konto hat jetzt eine andere Rolle',
    text: 'Ihr Konto hat gerade die Rolle {{role}} erhalten. Wer sich damit anmelden kann, darf, was ' +
      'diese Rolle erlaubt.',
  },
  'account-enabled': {
    subject: 'Ihr Konto kann wieder benutzt werden',
    text: 'Ihr Konto wurde gerade wieder freigegeben. Wer sich damit anmelden kann, kann es benutzen.',
  },
  'account-deleted': {
    subject: 'Ihr Konto wurde gelöscht',
    text: 'Ihr Konto wurde gerade gelöscht, mit allem, was darin gespeichert war. Das lässt sich nicht rückgängig ' +
      'machen, und Sie erhalten keine weiteren E-Mails.',
    after: 'Falls Sie das nicht waren, war jemand anderes in Ihrem Konto angemeldet: Informieren Sie die Betreiber ' +
      'von {{productName}}, und ändern Sie das Passwort Ihres Postfachs.',
  },
}
