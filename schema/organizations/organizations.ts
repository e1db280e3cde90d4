import { defineError } from '../http/errors.ts'

/** Also the error of whoever is no member: to them, an organisation does not exist (contract 19.2). */
export const OrganizationNotFound = defineError('ORGANIZATION_NOT_FOUND', 'Organisation not found', 404)
