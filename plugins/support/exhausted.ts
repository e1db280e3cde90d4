const limits: Readonly<Record<string, string>> = {
  EMFILE: 'This process may not open more files and connections: raise its limit (ulimit -n, or LimitNOFILE= of its systemd unit)',
  ENFILE: 'This machine may not open more files and connections: raise fs.file-max with sysctl',
  ENOMEM: 'This machine has no memory left: give it more, or limit what runs on it',
}

/** Returns whether an error means that a limit of the process or of the machine is reached, for the moment. */
export function isExhausted (error: unknown): boolean {
  return adviceFor(error) !== undefined
}

/** Returns a sentence that names the limit that is reached, or undefined if the error has another cause. */
export function adviceFor (error: unknown): string | undefined {
  const { code, syscall } = (error ?? {}) as NodeJS.ErrnoException
  // What is no system call, such as an error of a host, may use the same words.
  return syscall === undefined || !Object.hasOwn(limits, code ?? '') ? undefined : limits[code!]
}
