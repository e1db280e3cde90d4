import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { checkEnvironment } from '../settings/environment.ts'
import { explain } from '../data.ts'
import { multiplyNodeDeadlines } from '../process/deadlines.ts'
import { dataDirOf } from '../settings/service-options.ts'
import type { Settings } from '../settings/settings.ts'
import { storageSettings } from '../settings/stores.ts'
import type { Shell } from '../terminal/shell.ts'
import { closeBackends } from '../../plugins/uploads/open-backend.ts'
import { openStorages } from '../storage.ts'
import { requireAnswer } from '../wait-for-database.ts'
import { check, failed, ok, skipped, warning, type Check } from './check.ts'
import { checkDatabase } from './database.ts'
import { checkReplicas } from './replicas.ts'

const GIB = 1024 ** 3
const LITTLE_BYTES = GIB
const TOO_FEW_BYTES = GIB / 10

/** Checks everything that a node needs. It changes nothing, and does not start an embedded PostgreSQL. */
export async function checkAll (shell: Shell): Promise<Check[]> {
  const { settings, errors, warnings } = await checkEnvironment(shell)
  const isValid = (name: string) => !errors.some((error) => error.startsWith(`${name} `))
  const isStorageValid = storageSettings.every(isValid)
  const [disk, uploads, mail, database] = await Promise.all([
    isValid('DATA_DIR') ? checkDisk(settings) : [],
    isStorageValid ? checkUploads(settings) : [],
    isValid('SMTP_URL') && isValid('MAIL_FROM') ? checkMail(settings) : [],
    isValid('DATABASE_URL') && isValid('DATA_DIR') ? checkDatabase(settings) : [],
  ])
  const areUrlsValid = isValid('DATABASE_URL') && isValid('NOTIFICATIONS_URL')
  const notifications = areUrlsValid ? await checkNotifications(settings) : []
  const replicas = isValid('DATABASE_URL') && isValid('REPLICA_URLS') ? await checkReplicas(settings) : []
  return [await checkSettings(errors, warnings), ...database, notifications, replicas, disk, uploads, mail].flat()
}

function checkSettings (errors: readonly string[], warnings: readonly string[]): Promise<Check> {
  return check('settings', () => {
    if (errors.length > 0) return failed([...errors, ...warnings].join(' '))
    return warnings.length > 0 ? warning(warnings.join(' ')) : ok('valid')
  })
}

// Without them, a node notices the ends of sessions and new posts by asking only, and logs that it does.
function checkNotifications (settings: Settings): Promise<Check> {
  return check('notifications', async () => {
    const { NOTIFICATIONS_URL } = settings
    if (!NOTIFICATIONS_URL) return skipped('NOTIFICATIONS_URL is not set: they come from DATABASE_URL')
    try {
      await requireAnswer({ ...settings, DATABASE_URL: NOTIFICATIONS_URL })
      return ok('NOTIFICATIONS_URL answers')
    } catch (error) {
      return failed((error as Error).message.replace('DATABASE_URL', 'NOTIFICATIONS_URL'))
    }
  })
}

function checkDisk (settings: Settings): Promise<Check> {
  return check('disk', async () => {
    const folder = dataDirOf(settings)
    const { bavail, blocks, bsize } = await statfsOf(folder)
    const [free, total] = [Number(bavail) * Number(bsize), Number(blocks) * Number(bsize)]
    const detail = `${(free / GIB).toFixed(1)} of ${(total / GIB).toFixed(1)} GiB are free for ${folder}`
    if (free < TOO_FEW_BYTES) return failed(detail)
    return free < LITTLE_BYTES ? warning(detail) : ok(detail)
  })
}

// A store that is silent fails before the check does, with a sentence that names it.
const STORE_MS = { storage: 5000, storageConnect: 5000 }

function checkUploads (settings: Settings): Promise<Check> {
  return check('uploads', async () => {
    if (settings.file?.options.without?.includes('uploads')) return skipped('uploads are left out')
    const backends = await openStorages(settings, STORE_MS)
    try {
      const answers: string[] = []
      for (const [name, backend] of backends) {
        const began = performance.now()
        await backend.check({ isRepeated: false })
        if (name !== 'folder') answers.push(`${backend.root} answers in ${Math.ceil(performance.now() - began)} ms`)
      }
      return ok(answers.length > 0 ? answers.join(', ') : `${backends.get('folder')!.root} can be used`)
    } catch (error) {
      return failed(explain(error as Error, settings))
    } finally {
      closeBackends(backends)
    }
  })
}

// The folder may not exist before the first start.
async function statfsOf (folder: string): ReturnType<typeof statfs> {
  try {
    return await statfs(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || folder === dirname(folder)) throw error
    return statfsOf(dirname(folder))
  }
}

function checkMail ({ SMTP_URL, MAIL_FROM, DEADLINE_FACTOR }: Settings): Promise<Check> {
  return check('mail server', async () => {
    if (!SMTP_URL) return skipped('SMTP_URL is not set: no mails are sent')
    const { createSmtpMailer } = await import('../mail/smtp.ts')
    const { verify, close } = createSmtpMailer(SMTP_URL, MAIL_FROM!, multiplyNodeDeadlines(DEADLINE_FACTOR))
    const { host } = new URL(SMTP_URL)
    try {
      await verify()
      return ok(`${host} accepts mails`)
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      return failed(`${host} cannot be used (${code ?? message}): check SMTP_URL`)
    } finally {
      close()
    }
  })
}
