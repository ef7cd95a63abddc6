// What the text of a radio profile or of a topology must be before it is sent, and copies of one: the orchestrator
// checks the rest.

/** As the orchestrator reads documents (internal/yamldoc, MaxText). */
export const maxBytes = 256 * 2 ** 10

const nameLine = /^name:[ \t]*(["']?)([^"'\s#]+)\1[ \t]*(#.*)?$/m

/** The name that the text of a radio or a topology has, or why it cannot be one. */
export function documentName(text: string, what: 'radio' | 'topology'): { name: string; problem: string } {
  const document = what === 'radio' ? 'profile' : 'topology'
  if (!text.trim()) return { name: '', problem: `Choose a file, or paste the text of a ${document}.` }
  if (new TextEncoder().encode(text).length > maxBytes)
    return { name: '', problem: `The text is larger than ${maxBytes / 1024} KiB, the most that is read.` }
  const name = nameLine.exec(text)?.[2] ?? ''
  if (!name)
    return { name, problem: `The text has no line such as “name: own-${what}”, by which plans name the ${what}.` }
  if (!/^[a-z0-9][a-z0-9-]{0,62}$/.test(name))
    return {
      name,
      problem: `The name ${name} has other signs than lower-case letters, digits and hyphens, or more than 63.`,
    }
  return { name, problem: '' }
}

/** The text of a document under a name that none of the taken ones is: NAME-copy, NAME-copy-2 and so on. */
export function copyOf(text: string, taken: string[]): string {
  const name = nameLine.exec(text)?.[2]
  if (!name) return text
  const stem = `${name.replace(/-copy(-\d+)?$/, '').slice(0, 50)}-copy`
  let free = stem
  for (let n = 2; taken.includes(free); n++) free = `${stem}-${n}`
  return text.replace(nameLine, `name: ${free}`)
}
