import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startEmbedded } from '../../../node/embedded/server.ts'
import { prepareFolder } from '../../helpers/database.ts'
import { quick } from '../../helpers/embedded.ts'

t.test('14.4 a database of an older major version is not opened, and the error says how to move to the new one', async (t) => {
  const dataDir = await prepareFolder(t)
  await writeFile(join(dataDir, 'postgres/data/PG_VERSION'), '15\n')
  await t.rejects(startEmbedded({ dataDir, settings: quick }), {
    message: /was created by PostgreSQL 15, .+ "npm start -- backup FILE"\. Then, with this release, choose a new DATA_DIR and run "npm start -- restore FILE"\.$/,
  })
})
