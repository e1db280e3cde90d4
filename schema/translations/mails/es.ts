import type { MailTexts } from './en.ts'

export const es: MailTexts = {
  common: {
    fallback: 'Si el botón no funciona, usa este enlace:',
    undoButton: 'Deshacer el cambio',
    undoAdded: 'Si no has sido tú, usa este enlace, válido durante {{duration}}. Elimina lo que se haya añadido desde ' +
      'entonces, restablece la dirección y la contraseña anteriores y cierra todas las sesiones.',
    noUndo: 'Si no lo esperabas, ponte en contacto con los responsables de {{productName}}: este correo no contiene ' +
      'ningún enlace para deshacer el cambio.',
    resetNow: 'Si no has sido tú, puede que otra persona esté usando tu cuenta: solicita cuanto antes un enlace para ' +
      'establecer una contraseña nueva.',
    linksLeadTo: 'Estos enlaces llevan a {{page}}',
    waysIntro: 'Con qué se puede iniciar sesión además de con una contraseña, con el día en que se añadió:',
    waysPasskeys: 'Llaves de acceso: {{passkeys}}',
    waysApp: 'Aplicación de autenticación: {{app}}',
    waysIdentities: 'Cuentas vinculadas: {{identities}}',
    waysKeys: 'Claves de API: {{keys}}',
    waysNone: 'Con nada más.',
    waysForeign: 'Si algo de esto no es tuyo, solicita de inmediato un enlace para establecer una ' +
      'contraseña nueva.',
    severalChanges: 'Varios cambios en tu cuenta',
    moreChanges: 'Hubo más cambios de este tipo, que no figuran aquí.',
  },
  'password-reset': {
    subject: 'Establece una contraseña nueva',
    text: 'Alguien, probablemente tú, ha solicitado un enlace para establecer una contraseña nueva en tu cuenta. ' +
      'Funciona una sola vez y es válido durante {{duration}}.',
    button: 'Establecer contraseña',
    after: 'Si no has sido tú, no hagas nada. Tu contraseña seguirá siendo la misma.',
  },
  invitation: {
    subject: 'Tienes una cuenta: establece su contraseña',
    text: 'Se ha creado una cuenta para ti. Establece su contraseña con este enlace, que funciona una sola vez y es ' +
      'válido durante {{duration}}.',
    button: 'Establecer contraseña',
    after: 'Después, inicia sesión con esta dirección y esa contraseña.',
  },
  'organization-invitation': {
    subject: 'Tiene una invitación a una organización',
    text: 'Le han invitado a unirse a {{organization}}. Este enlace funciona una vez, durante {{duration}}.',
    button: 'Ver la invitación',
    after: 'Si no sabe quién le ha invitado, ignore este mensaje.',
  },
  'password-changed': {
    subject: 'Tu contraseña ha cambiado',
    text: 'La contraseña de tu cuenta se acaba de cambiar y se ha cerrado la sesión en todos los demás sitios.',
    undo: 'Si no has sido tú, usa este enlace, válido durante {{duration}}. Restablece la contraseña anterior y ' +
      'cierra todas las sesiones.',
    after: 'También puedes solicitar un enlace para establecer una contraseña nueva.',
    otherwise: 'Si no has sido tú, solicita cuanto antes un enlace para establecer una contraseña nueva.',
  },
  'sign-up': {
    subject: 'Confirma tu cuenta',
    text: 'Alguien, probablemente tú, se ha registrado con esta dirección. Crea la cuenta con este enlace, que ' +
      'funciona una sola vez y es válido durante {{duration}}.',
    button: 'Crear la cuenta',
    after: 'Si no has sido tú, ignora este correo: no pasará nada.',
  },
  'sign-up-taken': {
    subject: 'Ya tienes una cuenta',
    text: 'Alguien, probablemente tú, ha intentado registrarse con esta dirección, pero ya existe una cuenta con ella.',
    button: 'Iniciar sesión',
    forgot: 'Si has olvidado la contraseña, establece una nueva:',
    after: 'Si no has sido tú, no hagas nada. Tu cuenta seguirá como está.',
  },
  'verify-email': {
    subject: 'Confirma tu dirección de correo',
    text: 'Confirma con este enlace, válido durante {{duration}}, que esta es la dirección de correo de tu cuenta.',
    button: 'Confirmar la dirección',
    after: 'Si no tienes ninguna cuenta, no hagas nada.',
  },
  'email-changed': {
    subject: 'La dirección de correo de tu cuenta ha cambiado',
    text: 'Se ha cambiado la dirección de correo de tu cuenta. A partir de ahora, los correos se enviarán a la nueva.',
    undo: 'Si no has sido tú, usa este enlace, válido durante {{duration}}. Restablece esta dirección y la contraseña ' +
      'anterior, y cierra todas las sesiones.',
    after: 'Si otra persona puede conocer esa contraseña, establece después una nueva.',
  },
  'passkey-added': {
    subject: 'Se ha añadido una llave de acceso a tu cuenta',
    text: 'Se acaba de añadir una llave de acceso a tu cuenta. Quien la tenga puede iniciar sesión sin contraseña.',
  },
  'passkey-removed': {
    subject: 'Se ha eliminado una llave de acceso de tu cuenta',
    text: 'Se acaba de eliminar una llave de acceso de tu cuenta. Ya nadie puede iniciar sesión con ella.',
  },
  'api-key-added': {
    subject: 'Se ha creado una clave de API para tu cuenta',
    text: 'Se acaba de crear una clave de API para tu cuenta. Quien la tenga puede actuar en tu nombre hasta que se ' +
      'elimine o caduque.',
  },
  'api-key-removed': {
    subject: 'Se ha eliminado una clave de API de tu cuenta',
    text: 'Se acaba de eliminar una clave de API de tu cuenta. Los programas que la usan serán rechazados.',
  },
  'identity-added': {
    subject: 'Se ha añadido una forma de iniciar sesión a tu cuenta',
    text: 'Tu cuenta se acaba de vincular con una cuenta de {{provider}}. Quien tenga esa cuenta puede iniciar sesión ' +
      'sin contraseña.',
  },
  'identity-removed': {
    subject: 'Se ha eliminado una forma de iniciar sesión de tu cuenta',
    text: 'Se acaba de desvincular de tu cuenta la de otro proveedor. Ya nadie puede iniciar sesión con ella.',
  },
  'totp-added': {
    subject: 'Se ha añadido una aplicación de autenticación a tu cuenta',
    text: 'Se acaba de añadir una aplicación de autenticación a tu cuenta. A partir de ahora, para iniciar sesión hará ' +
      'falta también un código de la aplicación o un código de recuperación.',
    after: 'Después, solicita un enlace para establecer una contraseña nueva.',
    otherwise: 'Si no has sido tú, solicita cuanto antes un enlace para establecer una contraseña nueva.',
  },
  'totp-removed': {
    subject: 'Se ha eliminado la aplicación de autenticación de tu cuenta',
    text: 'Se acaba de eliminar la aplicación de autenticación de tu cuenta, junto con los códigos de recuperación. Ya ' +
      'no hace falta un código para iniciar sesión.',
    after: 'Si no has sido tú, ni los responsables de {{productName}} a petición tuya, solicita cuanto antes un enlace ' +
      'para establecer una contraseña nueva.',
  },
  'recovery-codes-created': {
    subject: 'Se han creado nuevos códigos de recuperación para tu cuenta',
    text: 'Se acaban de crear nuevos códigos de recuperación para tu cuenta. Los anteriores ya no funcionan.',
    after: 'Los códigos de recuperación anteriores que no se hayan usado volverán a funcionar.',
  },
  'recovery-code-used': {
    subject: 'Se ha usado un código de recuperación de tu cuenta',
    text: 'Se acaba de usar un código de recuperación de tu cuenta en lugar de la aplicación de autenticación.',
    after: 'Si no has sido tú, alguien tiene tus códigos de recuperación: solicita cuanto antes un enlace para ' +
      'establecer una contraseña nueva y, después, crea códigos nuevos.',
  },
  login: {
    subject: 'Inicia sesión en tu cuenta',
    text: 'Alguien, probablemente tú, quiere iniciar sesión en tu cuenta. Abre este enlace, que funciona una sola vez ' +
      'y es válido durante {{duration}}.',
    button: 'Iniciar sesión',
    codeHint: 'O introduce este código en la página que te ha pedido la dirección, en el mismo navegador:',
    after: 'Si no has sido tú, no hagas nada: sin este correo no entra nadie. No compartas el código con nadie ni ' +
      'reenvíes el enlace.',
  },
  'step-up': {
    subject: 'Tu código de confirmación',
    text: 'Alguien con la sesión iniciada en tu cuenta, probablemente tú, tiene que confirmar un cambio. Introduce este ' +
      'código donde se te haya pedido. Es válido durante {{duration}}:',
    after: 'Si no has sido tú, otra persona está usando tu cuenta: cierra todas las sesiones en la página de tu cuenta ' +
      'y no compartas el código con nadie.',
  },
  'ways-removed': {
    subject: 'Se ha eliminado la contraseña anterior de tu cuenta',
    text: 'Acabas de confirmar que esta dirección es tuya. Nadie lo había hecho antes, así que otra persona pudo haber ' +
      'configurado tu cuenta. Por eso se ha eliminado todo lo anterior: la contraseña, las llaves de acceso, la ' +
      'aplicación de autenticación, las cuentas vinculadas, las claves de API y todas las sesiones.',
    after: 'Tu cuenta y su contenido se conservan. Si quieres iniciar sesión con una contraseña, solicita un enlace en ' +
      '{{page}}',
  },
  'account-promoted': {
    subject: 'Tu cuenta es ahora de administrador',
    text: 'Tu cuenta acaba de recibir el rol de administrador. Quien pueda iniciar sesión en ella puede ' +
      'hacerlo todo.',
  },
  'role-granted': {
    subject: 'Tu cuenta tiene ahora otro rol',
    text: 'Tu cuenta acaba de recibir el rol {{role}}. Quien pueda iniciar sesión en ella puede hacer lo ' +
      'que permite ese rol.',
  },
  'account-enabled': {
    subject: 'Tu cuenta se puede volver a usar',
    text: 'Tu cuenta se acaba de habilitar de nuevo. Quien pueda iniciar sesión en ella puede usarla.',
  },
  'account-deleted': {
    subject: 'Tu cuenta se ha eliminado',
    text: 'Tu cuenta se acaba de eliminar, con todo lo que contenía. No se puede deshacer y no recibirás más correos.',
    after: 'Si no has sido tú, otra persona tenía la sesión iniciada en tu nombre: avisa a los responsables de ' +
      '{{productName}} y cambia la contraseña de tu correo.',
  },
}
