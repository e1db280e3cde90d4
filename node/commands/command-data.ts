import { constants } from 'node:os'
import type { Shell } from '../terminal/shell.ts'
import { openData, type Data } from '../data.ts'
import type { Settings } from '../settings/settings.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Opens the data for a command. If a signal ends the command, an embedded PostgreSQL that nobody else uses is stopped
 * first. It would otherwise run until a node has used it. A second signal ends the process at once.
 */
export async function openCommandData (settings: Settings, shell: Shell): Promise<Data> {
  const opening = openData(settings, () => {})
  const onSignal = (signal: NodeJS.Signals) => {
    stopListening()
    shell.interrupt(opening.then(({ stop }) => stop(), () => {}).then(() => 128 + constants.signals[signal]))
  }
  const stopListening = () => { for (const signal of SIGNALS) shell.process?.off(signal, onSignal) }
  for (const signal of SIGNALS) shell.process?.on(signal, onSignal)
  try {
    const data = await opening
    return { ...data, stop: () => data.stop().finally(stopListening) }
  } catch (error) {
    stopListening()
    throw error
  }
}
