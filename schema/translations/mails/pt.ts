import type { MailTexts } from './en.ts'

export const pt: MailTexts = {
  common: {
    fallback: 'Se o botão não funcionar, use este link:',
    undoButton: 'Desfazer a alteração',
    undoAdded: 'Se não foi você, use este link, válido por {{duration}}. Ele remove o que foi adicionado desde então, ' +
      'restaura o endereço e a senha anteriores e encerra todas as sessões.',
    noUndo: 'Se você não esperava isso, entre em contato com os responsáveis por {{productName}}: este e-mail não ' +
      'contém um link para desfazer a alteração.',
    resetNow: 'Se não foi você, outra pessoa pode estar usando sua conta: solicite imediatamente um link para definir ' +
      'uma nova senha.',
    linksLeadTo: 'Esses links levam a {{page}}',
    waysIntro: 'Com que se pode entrar além de uma senha, com o dia em que foi adicionado:',
    waysPasskeys: 'Chaves de acesso: {{passkeys}}',
    waysApp: 'Aplicativo autenticador: {{app}}',
    waysIdentities: 'Contas vinculadas: {{identities}}',
    waysKeys: 'Chaves de API: {{keys}}',
    waysNone: 'Com nada mais.',
    waysForeign: 'Se algo disso não for seu, solicite imediatamente um link para definir uma nova senha.',
    severalChanges: 'Várias alterações na sua conta',
    moreChanges: 'Houve mais alterações deste tipo, que não estão listadas aqui.',
  },
  'password-reset': {
    subject: 'Defina uma nova senha',
    text: 'Alguém, provavelmente você, solicitou um link para definir uma nova senha para sua conta. Ele funciona uma ' +
      'única vez e é válido por {{duration}}.',
    button: 'Definir nova senha',
    after: 'Se não foi você, não faça nada. Sua senha continua a mesma.',
  },
  invitation: {
    subject: 'Você tem uma conta: defina a senha',
    text: 'Uma conta foi criada para você. Defina a senha com este link, que funciona uma única vez e é válido por ' +
      '{{duration}}.',
    button: 'Definir a senha',
    after: 'Depois, entre com este endereço e essa senha.',
  },
  'organization-invitation': {
    subject: 'Você recebeu um convite para uma organização',
    text: 'Você foi convidado a participar de {{organization}}. Este link funciona uma vez, por {{duration}}.',
    button: 'Ver o convite',
    after: 'Se você não sabe quem o convidou, ignore esta mensagem.',
  },
  'password-changed': {
    subject: 'Sua senha foi alterada',
    text: 'A senha da sua conta acabou de ser alterada, e suas sessões em outros lugares foram encerradas.',
    undo: 'Se não foi você, use este link, válido por {{duration}}. Ele restaura a senha anterior e encerra todas as ' +
      'sessões.',
    after: 'Você também pode solicitar um link para definir uma nova senha.',
    otherwise: 'Se não foi você, solicite imediatamente um link para definir uma nova senha.',
  },
  'sign-up': {
    subject: 'Confirme sua conta',
    text: 'Alguém, provavelmente você, se cadastrou com este endereço. Crie a conta com este link, que funciona uma ' +
      'única vez e é válido por {{duration}}.',
    button: 'Criar a conta',
    after: 'Se não foi você, ignore este e-mail: nada vai acontecer.',
  },
  'sign-up-taken': {
    subject: 'Você já tem uma conta',
    text: 'Alguém, provavelmente você, tentou se cadastrar com este endereço, mas já existe uma conta com ele.',
    button: 'Entrar',
    forgot: 'Se você esqueceu a senha, defina uma nova:',
    after: 'Se não foi você, não faça nada. Sua conta continua como está.',
  },
  'verify-email': {
    subject: 'Confirme seu endereço de e-mail',
    text: 'Confirme com este link, válido por {{duration}}, que este é o endereço de e-mail da sua conta.',
    button: 'Confirmar o endereço',
    after: 'Se você não tem uma conta, não faça nada.',
  },
  'email-changed': {
    subject: 'O endereço de e-mail da sua conta foi alterado',
    text: 'O endereço de e-mail da sua conta foi alterado. A partir de agora, os e-mails vão para o novo endereço.',
    undo: 'Se não foi você, use este link, válido por {{duration}}. Ele restaura este endereço e a senha anterior, e ' +
      'encerra todas as sessões.',
    after: 'Se outra pessoa puder conhecer essa senha, defina uma nova em seguida.',
  },
  'passkey-added': {
    subject: 'Uma chave de acesso foi adicionada à sua conta',
    text: 'Uma chave de acesso acabou de ser adicionada à sua conta. Quem a tiver pode entrar sem senha.',
  },
  'passkey-removed': {
    subject: 'Uma chave de acesso foi removida da sua conta',
    text: 'Uma chave de acesso acabou de ser removida da sua conta. Ninguém mais pode entrar com ela.',
  },
  'api-key-added': {
    subject: 'Uma chave de API foi criada para sua conta',
    text: 'Uma chave de API acabou de ser criada para sua conta. Quem a tiver pode agir em seu nome até que ela seja ' +
      'excluída ou expire.',
  },
  'api-key-removed': {
    subject: 'Uma chave de API da sua conta foi excluída',
    text: 'Uma chave de API da sua conta acabou de ser excluída. Os programas que a utilizam serão recusados.',
  },
  'identity-added': {
    subject: 'Uma forma de entrar foi adicionada à sua conta',
    text: 'Sua conta acabou de ser vinculada a uma conta de {{provider}}. Quem tiver essa conta pode entrar sem senha.',
  },
  'identity-removed': {
    subject: 'Uma forma de entrar foi removida da sua conta',
    text: 'Uma conta de outro provedor acabou de ser desvinculada da sua. Ninguém mais pode entrar com ela.',
  },
  'totp-added': {
    subject: 'Um aplicativo autenticador foi adicionado à sua conta',
    text: 'Um aplicativo autenticador acabou de ser adicionado à sua conta. A partir de agora, para entrar também é ' +
      'necessário um código do aplicativo ou um código de recuperação.',
    after: 'Depois, solicite um link para definir uma nova senha.',
    otherwise: 'Se não foi você, solicite imediatamente um link para definir uma nova senha.',
  },
  'totp-removed': {
    subject: 'O aplicativo autenticador foi removido da sua conta',
    text: 'O aplicativo autenticador acabou de ser removido da sua conta, junto com os códigos de recuperação. Não é ' +
      'mais necessário um código para entrar.',
    after: 'Se não foi você, nem os responsáveis por {{productName}} a seu pedido, solicite imediatamente um link para ' +
      'definir uma nova senha.',
  },
  'recovery-codes-created': {
    subject: 'Novos códigos de recuperação foram criados para a sua conta',
    text: 'Novos códigos de recuperação acabaram de ser criados para a sua conta. Os anteriores não funcionam mais.',
    after: 'Os códigos de recuperação anteriores que não foram usados voltarão a funcionar.',
  },
  'recovery-code-used': {
    subject: 'Um código de recuperação da sua conta foi usado',
    text: 'Um código de recuperação da sua conta acabou de ser usado no lugar do aplicativo autenticador.',
    after: 'Se não foi você, alguém tem seus códigos de recuperação: solicite imediatamente um link para definir uma ' +
      'nova senha e, em seguida, crie novos códigos.',
  },
  login: {
    subject: 'Entre na sua conta',
    text: 'Alguém, provavelmente você, quer entrar na sua conta. Abra este link, que funciona uma única vez e é válido ' +
      'por {{duration}}.',
    button: 'Entrar',
    codeHint: 'Ou digite este código na página que pediu seu endereço, no mesmo navegador:',
    after: 'Se não foi você, não faça nada: sem este e-mail, ninguém entra. Nunca informe o código a ninguém nem ' +
      'encaminhe o link.',
  },
  'step-up': {
    subject: 'Seu código de confirmação',
    text: 'Alguém com uma sessão aberta na sua conta, provavelmente você, precisa confirmar uma alteração. Digite este ' +
      'código onde ele foi pedido. Ele é válido por {{duration}}:',
    after: 'Se não foi você, outra pessoa está usando sua conta: encerre todas as sessões na página da sua conta e não ' +
      'informe o código a ninguém.',
  },
  'ways-removed': {
    subject: 'A senha anterior da sua conta foi removida',
    text: 'Você acabou de confirmar que este endereço é seu. Ninguém tinha feito isso antes, então outra pessoa pode ' +
      'ter configurado sua conta. Por isso, tudo o que havia antes foi removido: a senha, as chaves de acesso, o ' +
      'aplicativo autenticador, as contas vinculadas, as chaves de API e todas as sessões.',
    after: 'Sua conta e o conteúdo dela permanecem. Se quiser entrar com uma senha, solicite um link em {{page}}',
  },
  'account-promoted': {
    subject: 'Sua conta agora é de administrador',
    text: 'Sua conta acabou de receber a função de administrador. Quem puder entrar nela pode fazer tudo.',
  },
  'role-granted': {
    subject: 'Sua conta agora tem outra função',
    text: 'Sua conta acabou de receber a função {{role}}. Quem puder entrar nela pode fazer o que essa ' +
      'função permite.',
  },
  'account-enabled': {
    subject: 'Sua conta pode ser usada de novo',
    text: 'Sua conta acabou de ser habilitada de novo. Quem puder entrar nela pode usá-la.',
  },
  'account-deleted': {
    subject: 'Sua conta foi excluída',
    text: 'Sua conta acabou de ser excluída, com tudo o que estava guardado nela. Isso não pode ser desfeito, e você ' +
      'não receberá mais e-mails.',
    after: 'Se não foi você, outra pessoa tinha entrado na sua conta: avise os responsáveis por {{productName}} e ' +
      'troque a senha do seu e-mail.',
  },
}
