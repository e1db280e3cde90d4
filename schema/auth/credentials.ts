import { defineError } from '../http/errors.ts'

export const PasskeyNotFound = defineError('PASSKEY_NOT_FOUND', 'Passkey not found', 404)
