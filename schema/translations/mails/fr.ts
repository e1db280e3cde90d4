import type { MailTexts } from './en.ts'

export const fr: MailTexts = {
  common: {
    fallback: 'Si le bouton ne fonctionne pas, utilisez ce lien :',
    undoButton: 'Annuler la modification',
    undoAdded: 'Si ce n’était pas vous, utilisez ce lien, valable {{duration}}. Il supprime ce qui a été ajouté ' +
      'depuis, rétablit l’adresse et le mot de passe précédents et déconnecte tout le monde.',
    noUndo: 'Si vous ne vous y attendiez pas, contactez les responsables de {{productName}} : cet e-mail ne contient ' +
      'aucun lien permettant d’annuler la modification.',
    resetNow: 'Si ce n’était pas vous, quelqu’un d’autre utilise peut-être votre compte : demandez immédiatement un ' +
      'lien pour définir un nouveau mot de passe.',
    linksLeadTo: 'Ces liens mènent à {{page}}',
    waysIntro: 'Ce qui permet de s’y connecter en plus d’un mot de passe, avec la date d’ajout :',
    waysPasskeys: 'Clés d’accès : {{passkeys}}',
    waysApp: 'Application d’authentification : {{app}}',
    waysIdentities: 'Comptes liés : {{identities}}',
    waysKeys: 'Clés d’API : {{keys}}',
    waysNone: 'Rien d’autre.',
    waysForeign: 'Si quelque chose n’est pas à vous, demandez tout de suite un lien pour définir un ' +
      'nouveau mot de passe.',
    severalChanges: 'Plusieurs modifications de votre compte',
    moreChanges: 'Il y a eu d’autres modifications de ce type, qui ne figurent pas ici.',
  },
  'password-reset': {
    subject: 'Définir un nouveau mot de passe',
    text: 'Quelqu’un, sans doute vous, a demandé un lien pour définir un nouveau mot de passe pour votre compte. Il ' +
      'fonctionne une seule fois et reste valable {{duration}}.',
    button: 'Définir un nouveau mot de passe',
    after: 'Si ce n’était pas vous, ne faites rien. Votre mot de passe reste inchangé.',
  },
  invitation: {
    subject: 'Un compte vous attend : définissez son mot de passe',
    text: 'Un compte a été créé pour vous. Définissez son mot de passe avec ce lien, qui fonctionne une seule fois et ' +
      'reste valable {{duration}}.',
    button: 'Définir le mot de passe',
    after: 'Connectez-vous ensuite avec cette adresse et ce mot de passe.',
  },
  'organization-invitation': {
    subject: 'Vous êtes invité dans une organisation',
    text: 'Vous êtes invité à rejoindre {{organization}}. Ce lien fonctionne une seule fois, pendant {{duration}}.',
    button: 'Voir l’invitation',
    after: 'Si vous ne savez pas qui vous a invité, ignorez ce message.',
  },
  'password-changed': {
    subject: 'Votre mot de passe a été modifié',
    text: 'Le mot de passe de votre compte vient d’être modifié, et vous êtes déconnecté partout ailleurs.',
    undo: 'Si ce n’était pas vous, utilisez ce lien, valable {{duration}}. Il rétablit le mot de passe précédent et ' +
      'déconnecte tout le monde.',
    after: 'Vous pouvez aussi demander un lien pour définir un nouveau mot de passe.',
    otherwise: 'Si ce n’était pas vous, demandez immédiatement un lien pour définir un nouveau mot de passe.',
  },
  'sign-up': {
    subject: 'Confirmez votre compte',
    text: 'Quelqu’un, sans doute vous, s’est inscrit avec cette adresse. Créez le compte avec ce lien, qui fonctionne ' +
      'une seule fois et reste valable {{duration}}.',
    button: 'Créer le compte',
    after: 'Si ce n’était pas vous, ignorez cet e-mail : il ne se passera rien.',
  },
  'sign-up-taken': {
    subject: 'Vous avez déjà un compte',
    text: 'Quelqu’un, sans doute vous, a voulu s’inscrire avec cette adresse, mais elle est déjà associée à un compte.',
    button: 'Se connecter',
    forgot: 'Si vous avez oublié le mot de passe, définissez-en un nouveau :',
    after: 'Si ce n’était pas vous, ne faites rien. Votre compte reste inchangé.',
  },
  'verify-email': {
    subject: 'Confirmez votre adresse e-mail',
    text: 'Confirmez avec ce lien, valable {{duration}}, que cette adresse e-mail est bien celle de votre compte.',
    button: 'Confirmer l’adresse',
    after: 'Si vous n’avez pas de compte, ne faites rien.',
  },
  'email-changed': {
    subject: 'L’adresse e-mail de votre compte a été modifiée',
    text: 'L’adresse e-mail de votre compte a été modifiée. Désormais, les e-mails sont envoyés à la nouvelle adresse.',
    undo: 'Si ce n’était pas vous, utilisez ce lien, valable {{duration}}. Il rétablit cette adresse et le mot de ' +
      'passe précédent, et déconnecte tout le monde.',
    after: 'Si quelqu’un d’autre connaît peut-être ce mot de passe, définissez-en ensuite un nouveau.',
  },
  'passkey-added': {
    subject: 'Une clé d’accès a été ajoutée à votre compte',
    text: 'Une clé d’accès vient d’être ajoutée à votre compte. Quiconque la possède peut se connecter sans mot de passe.',
  },
  'passkey-removed': {
    subject: 'Une clé d’accès a été retirée de votre compte',
    text: 'Une clé d’accès vient d’être retirée de votre compte. Plus personne ne peut s’en servir pour se connecter.',
  },
  'api-key-added': {
    subject: 'Une clé d’API a été créée pour votre compte',
    text: 'Une clé d’API vient d’être créée pour votre compte. Quiconque la possède peut agir en votre nom jusqu’à ' +
      'ce qu’elle soit supprimée ou expire.',
  },
  'api-key-removed': {
    subject: 'Une clé d’API de votre compte a été supprimée',
    text: 'Une clé d’API de votre compte vient d’être supprimée. Les programmes qui l’utilisent sont refusés.',
  },
  'identity-added': {
    subject: 'Un moyen de connexion a été ajouté à votre compte',
    text: 'Votre compte vient d’être lié à un compte {{provider}}. Quiconque possède ce dernier peut se connecter ' +
      'sans mot de passe.',
  },
  'identity-removed': {
    subject: 'Un moyen de connexion a été retiré de votre compte',
    text: 'Un compte d’un autre fournisseur vient d’être dissocié du vôtre. Plus personne ne peut s’en servir pour se ' +
      'connecter.',
  },
  'totp-added': {
    subject: 'Une application d’authentification a été ajoutée à votre compte',
    text: 'Une application d’authentification vient d’être ajoutée à votre compte. Désormais, toute connexion demande ' +
      'aussi un code de l’application ou un code de récupération.',
    after: 'Demandez ensuite un lien pour définir un nouveau mot de passe.',
    otherwise: 'Si ce n’était pas vous, demandez immédiatement un lien pour définir un nouveau mot de passe.',
  },
  'totp-removed': {
    subject: 'L’application d’authentification a été retirée de votre compte',
    text: 'L’application d’authentification vient d’être retirée de votre compte, avec les codes de récupération. La ' +
      'connexion ne demande plus de code.',
    after: 'Si ce n’était ni vous ni, à votre demande, les responsables de {{productName}}, demandez immédiatement un ' +
      'lien pour définir un nouveau mot de passe.',
  },
  'recovery-codes-created': {
    subject: 'De nouveaux codes de récupération ont été créés pour votre compte',
    text: 'De nouveaux codes de récupération viennent d’être créés pour votre compte. Les précédents ne sont plus valables.',
    after: 'Les codes de récupération précédents qui n’ont pas été utilisés redeviennent alors valables.',
  },
  'recovery-code-used': {
    subject: 'Un code de récupération de votre compte a été utilisé',
    text: 'Un code de récupération de votre compte vient d’être utilisé à la place de l’application d’authentification.',
    after: 'Si ce n’était pas vous, quelqu’un possède vos codes de récupération : demandez immédiatement un lien pour ' +
      'définir un nouveau mot de passe, puis créez de nouveaux codes.',
  },
  login: {
    subject: 'Connexion à votre compte',
    text: 'Quelqu’un, sans doute vous, souhaite se connecter à votre compte. Ouvrez ce lien, qui fonctionne une seule ' +
      'fois et reste valable {{duration}}.',
    button: 'Se connecter',
    codeHint: 'Ou saisissez ce code sur la page qui vous a demandé votre adresse, dans le même navigateur :',
    after: 'Si ce n’était pas vous, ne faites rien : sans cet e-mail, personne ne peut entrer. Ne communiquez le code ' +
      'à personne et ne transmettez pas le lien.',
  },
  'step-up': {
    subject: 'Votre code de confirmation',
    text: 'Une personne connectée à votre compte, sans doute vous, doit confirmer une modification. Saisissez ce code ' +
      'là où il vous a été demandé. Il est valable {{duration}} :',
    after: 'Si ce n’était pas vous, quelqu’un d’autre utilise votre compte : fermez toutes les sessions sur la page ' +
      'de votre compte et ne communiquez le code à personne.',
  },
  'ways-removed': {
    subject: 'L’ancien mot de passe de votre compte a été supprimé',
    text: 'Vous venez de confirmer que cette adresse est la vôtre. Personne ne l’avait fait auparavant, et quelqu’un ' +
      'd’autre a donc pu configurer votre compte. C’est pourquoi tout ce qui précède a été supprimé : le mot de ' +
      'passe, les clés d’accès, l’application d’authentification, les comptes liés, les clés d’API et toutes les ' +
      'sessions.',
    after: 'Votre compte et son contenu sont conservés. Pour vous connecter avec un mot de passe, demandez un lien ' +
      'sur {{page}}',
  },
  'account-promoted': {
    subject: 'Votre compte est maintenant administrateur',
    text: 'Votre compte vient de recevoir le rôle d’administrateur. Quiconque peut s’y connecter peut tout ' +
      'faire.',
  },
  'role-granted': {
    subject: 'Votre compte a maintenant un autre rôle',
    text: 'Votre compte vient de recevoir le rôle {{role}}. Quiconque peut s’y connecter peut faire ce ' +
      'que ce rôle permet.',
  },
  'account-enabled': {
    subject: 'Votre compte peut de nouveau être utilisé',
    text: 'Votre compte vient d’être réactivé. Quiconque peut s’y connecter peut l’utiliser.',
  },
  'account-deleted': {
    subject: 'Votre compte a été supprimé',
    text: 'Votre compte vient d’être supprimé, avec tout ce qu’il contenait. C’est définitif, et vous ne recevrez ' +
      'plus d’e-mails.',
    after: 'Si ce n’était pas vous, quelqu’un d’autre était connecté à votre place : prévenez les responsables de ' +
      '{{productName}} et changez le mot de passe de votre messagerie.',
  },
}
