// What the name and the size of a topology's file must be.

/** As the orchestrator reads documents (internal/yamldoc, MaxText). */
export const maxBytes = 256 * 2 ** 10

/** The topology's name after its file's, or why the file cannot be one. */
export function topologyFile(file: string, size: number): { name: string; problem: string } {
  const name = file.replace(/\.ya?ml$/i, '')
  let problem = ''
  if (name === file) problem = `${file} is no YAML file: expected a name such as valley.yaml.`
  else if (!/^[a-z0-9][a-z0-9-]{0,62}$/.test(name))
    problem = `The name ${name} has other signs than lower-case letters, digits and hyphens, or more than 63: rename the file and the topology in it.`
  else if (size > maxBytes) problem = `${file} is larger than ${maxBytes / 1024} KiB, the most that is read.`
  return { name, problem }
}
