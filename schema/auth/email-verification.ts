import { defineError } from '../http/errors.ts'

export const EmailVerified = defineError('EMAIL_VERIFIED', 'The email address of this user is verified already', 409)
