import { Overloaded } from '../../schema/http/errors.ts'

interface Waiting {
  start: () => void
  reject: (error: Error) => void
}

// The tasks of a branch, in the order of their turns. Only those without branches of their own have tasks.
interface Branch {
  size: number
  readonly branches: Map<string, Branch>
  readonly tasks: Waiting[]
}

const newBranch = (): Branch => ({ size: 0, branches: new Map(), tasks: [] })

/**
 * Runs a number of tasks at once. The others wait, and their branches take turns: those of the first name, among them
 * those of the second one, and so on. Tasks with the same names run in the order of the calls.
 */
export class FairQueue {
  readonly #concurrency: number
  readonly #maxWaiting: number
  readonly #root = newBranch()
  #running = 0

  constructor ({ concurrency, maxWaiting }: { concurrency: number, maxWaiting: number }) {
    this.#concurrency = concurrency
    this.#maxWaiting = maxWaiting
  }

  /** The number of tasks that wait. */
  get waiting (): number { return this.#root.size }

  /**
   * Runs a task and returns its result, or rejects with its error. If too many tasks wait, the last one of the branch
   * with most of them gives way: it rejects with `Overloaded`, or this one does if its own branches have about as many.
   * @param names those of its branches, widest first; always as many
   */
  async run<Result> (names: readonly string[], task: () => Promise<Result>): Promise<Result> {
    if (this.#running >= this.#concurrency) await this.#wait(names)
    else this.#running++
    try {
      return await task()
    } finally {
      const next = takeNext(this.#root)
      // The next task takes the place of this one.
      if (next) next.start()
      else this.#running--
    }
  }

  #wait (names: readonly string[]): Promise<void> {
    if (this.#root.size >= this.#maxWaiting) makeRoom(this.#root, names)
    return new Promise((resolve, reject) => {
      let branch = this.#root
      branch.size++
      for (const name of names) {
        const next = branch.branches.get(name) ?? newBranch()
        branch.branches.set(name, next)
        next.size++
        branch = next
      }
      branch.tasks.push({ start: resolve, reject })
    })
  }
}

// Removes the task whose turn it is. Its branches move behind the others.
function takeNext (branch: Branch): Waiting | undefined {
  if (branch.size === 0) return undefined
  branch.size--
  const [first] = branch.branches
  if (!first) return branch.tasks.shift()
  const [name, next] = first
  const task = takeNext(next)
  branch.branches.delete(name)
  if (next.size > 0) branch.branches.set(name, next)
  return task
}

// Rejects the last task of the branch with most of them, at the first level where that has more than those of a new
// task would have. Throws `Overloaded` if there is none.
function makeRoom (root: Branch, names: readonly string[]): void {
  const own = [root]
  for (const name of names) {
    const parent = own.at(-1)!
    const [key, largest] = largestOf(parent)!
    const next = parent.branches.get(name)
    if (largest.size > (next?.size ?? 0) + 1) {
      takeLast(largest).reject(new Overloaded())
      if (largest.size === 0) parent.branches.delete(key)
      for (const branch of own) branch.size--
      return
    }
    if (!next) break
    own.push(next)
  }
  throw new Overloaded()
}

// Removes the last task of the largest branch of each level.
function takeLast (branch: Branch): Waiting {
  branch.size--
  const found = largestOf(branch)
  if (!found) return branch.tasks.pop()!
  const [name, largest] = found
  const task = takeLast(largest)
  if (largest.size === 0) branch.branches.delete(name)
  return task
}

function largestOf ({ branches }: Branch): [name: string, branch: Branch] | undefined {
  let largest: [string, Branch] | undefined
  for (const entry of branches) if (!largest || entry[1].size > largest[1].size) largest = entry
  return largest
}
