import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { findPort } from '../helpers/port.ts'
import { openSql } from '../helpers/sql.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'
import { until } from '../helpers/until.ts'
import { fieldPart, filePart, leftovers, post, upload } from '../helpers/uploads.ts'

// With Debian's clamd, whose only signature is that of the test file of https://www.eicar.org.

const MIB = 1024 * 1024
const EICAR = 'X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*'
const SIGNATURE = '44d88612fea8a8f36de82e1278abb02f:68:Eicar-Test-Signature\n'

const folder = temporaryFolder()
const port = await findPort()
const socket = join(folder, 'clamd.sock')
mkdirSync(join(folder, 'signatures'))
writeFileSync(join(folder, 'signatures', 'eicar.hdb'), SIGNATURE)
writeFileSync(join(folder, 'clamd.conf'), `
Foreground yes
DatabaseDirectory ${folder}/signatures
LocalSocket ${socket}
TCPSocket ${port}
TCPAddr 127.0.0.1
StreamMaxLength 2M
MaxFileSize 1M
AlertExceedsMax yes
`)
const clamd = spawn('/usr/sbin/clamd', ['--config-file', join(folder, 'clamd.conf')], { stdio: 'ignore' })
process.prependOnceListener('exit', () => { clamd.kill('SIGKILL') })
await until('clamd listens', async () => (await readdir(folder)).includes('clamd.sock'))

t.test('23.3 clamd: what it finds, and what is too large for it, is never published; without it nothing is', async (t) => {
  for (const place of [socket, `127.0.0.1:${port}`]) {
    const usher = await createUsher(t, { scan: { clamd: place, seconds: 300 }, uploadMaxBytes: 64 * MIB })
    const sql = openSql(t, usher)
    const send = async (content: string | Buffer) => {
      const response = await post(usher, [filePart(content), fieldPart('description', 'Something')])
      return [response.statusCode, response.json().code]
    }
    t.same(await send(EICAR), [422, 'MALWARE_FOUND'], place)
    // The size is refused before the bytes are there, again and again, also while they are still sent.
    for (let times = 0; times < 10; times++) t.same(await send(Buffer.alloc(4 * MIB)), [413, 'TOO_LARGE_TO_SCAN'], place)
    t.same(await send(Buffer.alloc(1.5 * MIB)), [413, 'TOO_LARGE_TO_SCAN'], 'clamd would skip some of it')
    t.same(await leftovers(usher, sql), { tmp: 0, files: 0, rows: 0 }, place)
    for (const content of ['clean', '', Buffer.alloc(MIB / 2)]) {
      const { fileUrl } = await upload(usher, content)
      t.ok((await usher.inject('GET', fileUrl)).rawPayload.equals(Buffer.from(content)), place)
    }
  }
  const usher = await createUsher(t, { scan: { clamd: socket } })
  clamd.kill('SIGKILL')
  await once(clamd, 'exit')
  await t.rejects(upload(usher, 'clean'), /503.*SCAN_UNAVAILABLE/)
})
