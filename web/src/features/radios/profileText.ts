// What the text of a radio profile must be before it is sent: the orchestrator checks the rest.

/** As the orchestrator reads documents (internal/yamldoc, MaxText). */
export const maxBytes = 256 * 2 ** 10

/** The name that a profile's text has, or why it cannot be one. */
export function profileName(text: string): { name: string; problem: string } {
  if (!text.trim()) return { name: '', problem: 'Choose a file, or paste the text of a profile.' }
  if (new TextEncoder().encode(text).length > maxBytes)
    return { name: '', problem: `The text is larger than ${maxBytes / 1024} KiB, the most that is read.` }
  const name = /^name:[ \t]*(["']?)([^"'\s#]+)\1[ \t]*(#.*)?$/m.exec(text)?.[2] ?? ''
  if (!name) return { name, problem: 'The text has no line such as “name: own-hf”, by which plans name the radio.' }
  if (!/^[a-z0-9][a-z0-9-]{0,62}$/.test(name))
    return {
      name,
      problem: `The name ${name} has other signs than lower-case letters, digits and hyphens, or more than 63.`,
    }
  return { name, problem: '' }
}
