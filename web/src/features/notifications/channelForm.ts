// A notification channel as its form has it: a webhook or e-mail. Pure.
import type { MessageInitShape } from '@bufbuild/protobuf'
import { Code } from '@connectrpc/connect'
import { type Channel, MailSecurity, type SaveChannelRequestSchema } from '@/gen/linktrial/v1/notification_pb'

export type ChannelKind = 'webhook' | 'email'

/** What becomes of the secret that the orchestrator keeps: it is never sent to a browser. */
export type SecretChoice = 'keep' | 'set' | 'remove'

export interface ChannelForm {
  kind: ChannelKind
  name: string
  /** That which was read; 0 for a new one. */ version: number
  off: boolean
  url: string
  host: string
  /** As it is typed. */ port: string
  security: MailSecurity
  user: string
  from: string
  /** Addresses, one a line or divided by commas. */ to: string
  /** The orchestrator has one. */ hasSecret: boolean
  secretChoice: SecretChoice
  secret: string
  allKinds: boolean
  kinds: string[]
}
export type Field = 'name' | 'url' | 'host' | 'port' | 'security' | 'user' | 'from' | 'to' | 'secret' | 'kinds'
export type Problems = Partial<Record<Field, string>>

export const kindName: Record<ChannelKind, string> = { webhook: 'webhook', email: 'e-mail' }

export const securities: { value: MailSecurity; port: string; text: string }[] = [
  { value: MailSecurity.STARTTLS, port: '587', text: 'STARTTLS: refused where the server has none' },
  { value: MailSecurity.TLS, port: '465', text: 'TLS from the first byte' },
  { value: MailSecurity.NONE, port: '25', text: 'no encryption: without login only' },
]

export function newForm(kind: ChannelKind): ChannelForm {
  return {
    kind,
    name: '',
    version: 0,
    off: false,
    url: '',
    host: '',
    port: '587',
    security: MailSecurity.STARTTLS,
    user: '',
    from: '',
    to: '',
    hasSecret: false,
    secretChoice: 'set',
    secret: '',
    allKinds: true,
    kinds: [],
  }
}

export const channelKind = (c: Channel): ChannelKind => (c.settings.case === 'email' ? 'email' : 'webhook')

export function formOf(c: Channel): ChannelForm {
  const form: ChannelForm = {
    ...newForm(channelKind(c)),
    name: c.name,
    version: c.version,
    off: c.off,
    hasSecret: c.hasSecret,
    secretChoice: c.hasSecret ? 'keep' : 'set',
    allKinds: !c.kinds.length,
    kinds: [...c.kinds],
  }
  if (c.settings.case === 'webhook') form.url = c.settings.value.url
  if (c.settings.case === 'email') {
    const { host, port, security, user, from, to } = c.settings.value
    Object.assign(form, { host, port: String(port), security, user, from, to: to.join('\n') })
  }
  return form
}

export const addresses = (text: string): string[] =>
  text
    .split(/[\n,;]/)
    .map((a) => a.trim())
    .filter(Boolean)

/** The form as the orchestrator takes it. */
export function channelRequest(f: ChannelForm): MessageInitShape<typeof SaveChannelRequestSchema> {
  const settings =
    f.kind === 'webhook'
      ? { case: 'webhook' as const, value: { url: f.url.trim() } }
      : {
          case: 'email' as const,
          value: {
            host: f.host.trim(),
            port: Number(f.port),
            security: f.security,
            user: f.user.trim(),
            from: f.from.trim(),
            to: addresses(f.to),
          },
        }
  return {
    channel: {
      name: f.name.trim(),
      version: f.version,
      off: f.off,
      kinds: f.allKinds ? [] : [...f.kinds],
      settings,
    },
    secret: f.secretChoice === 'set' ? f.secret : '',
    removeSecret: f.secretChoice === 'remove',
  }
}

/** Where it sends to, as a table has it. */
export function target(c: Channel): string {
  if (c.settings.case === 'webhook') return c.settings.value.url
  return c.settings.case === 'email' ? c.settings.value.to.join(', ') : ''
}

/** By what it gets there, where that is not the same. */
export function by(c: Channel): string {
  return c.settings.case === 'email' ? `by ${c.settings.value.host}:${c.settings.value.port}` : ''
}

function urlProblem(text: string): string {
  const example = 'such as https://chat.example/hooks/field'
  if (!text) return `Give the address that receives the notifications, ${example}.`
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return `Expected an http or https address, ${example}.`
  const url = new URL(text)
  if (url.username || url.password)
    return 'An address with a user or password is refused: the secret has a field of its own.'
  return url.hash ? 'A part after # is refused: no server receives it.' : ''
}

const address = /^[^\s@<>,;]+@[^\s@<>,;]+$/

function mailProblems(f: ChannelForm): Problems {
  const out: Problems = {}
  const host = f.host.trim()
  if (!host) out.host = 'Give the name or address of the mail server, such as mail.example.'
  else if (/[\s/@]/.test(host)) out.host = `Expected a name or address alone, found “${host}”.`
  const port = Number(f.port)
  if (!/^\d+$/.test(f.port.trim()) || port < 1 || port > 65535) out.port = 'Expected a number from 1 to 65535.'
  if (f.user.trim() && f.security === MailSecurity.NONE)
    out.user = 'A login takes encryption: choose STARTTLS or TLS, or leave the user empty.'
  if (!address.test(f.from.trim())) out.from = 'Expected an address, such as linktrial@mail.example.'
  const to = addresses(f.to)
  const wrong = to.find((a) => !address.test(a))
  if (!to.length) out.to = 'Give at least one address.'
  else if (wrong) out.to = `“${wrong}” is not an address.`
  return out
}

/** Whether it still sends to what the secret was given for. */
const sameTarget = (f: ChannelForm, was: ChannelForm) =>
  f.kind === 'webhook'
    ? f.url.trim() === was.url
    : f.host.trim().toLowerCase() === was.host.toLowerCase() &&
      Number(f.port) === Number(was.port) &&
      f.security === was.security &&
      f.user.trim() === was.user

function secretProblem(f: ChannelForm, was: ChannelForm | undefined): string {
  const what = f.kind === 'email' ? 'password' : 'secret'
  if (f.hasSecret && f.secretChoice === 'keep' && was && !sameTarget(f, was))
    return `It now sends elsewhere: type the ${what} again, or remove it.`
  if (f.hasSecret && f.secretChoice === 'set' && !f.secret) return `Type the new ${what}.`
  if (f.kind === 'webhook') return ''
  const has = f.secretChoice === 'keep' ? f.hasSecret : f.secretChoice === 'set' && !!f.secret
  if (f.user.trim() && !has) return 'A login with a user takes a password.'
  return has && !f.user.trim() ? 'Without a user there is no password: give the user, or no password.' : ''
}

/**
 * Why a form would be refused, by its fields. names are those that are there; was is what
 * was read of the channel that is changed.
 */
export function formProblems(f: ChannelForm, names: readonly string[], was?: ChannelForm): Problems {
  const out: Problems = f.kind === 'email' ? mailProblems(f) : {}
  const name = f.name.trim()
  if (!name) out.name = 'Give a name.'
  else if (!f.version && names.includes(name)) out.name = `There is a notification channel ${name} already.`
  const url = f.kind === 'webhook' ? urlProblem(f.url.trim()) : ''
  if (url) out.url = url
  const secret = secretProblem(f, was)
  if (secret) out.secret = secret
  if (!f.allKinds && !f.kinds.length) out.kinds = 'Choose at least one kind, or all.'
  return out
}

const fieldWords: [Field, RegExp, ChannelKind?][] = [
  ['secret', /\b(secret|password|signing key)\b/i],
  ['url', /\burl\b/i, 'webhook'],
  ['port', /\bport\b/i, 'email'],
  ['host', /\b(host|mail server)\b/i, 'email'],
  ['from', /\b(from|sender)\b/i, 'email'],
  ['to', /(^to\b|\b(recipients?|addressees?)\b)/i, 'email'],
  ['security', /\b(security|starttls|tls)\b/i, 'email'],
  ['user', /\b(user|login)\b/i, 'email'],
  ['kinds', /\bkinds?\b/i],
  ['name', /\bname\b/i],
]
/** How much of a refusal names the field: what comes later is what was found. Characters. */
const headLength = 60

/** The field that a refusal of the orchestrator is about, by its first words; undefined where it names none. */
export function fieldOf(message: string, f: Pick<ChannelForm, 'kind' | 'from'>): Field | undefined {
  const found = /^address "([^"]*)"/.exec(message)?.[1]
  if (found !== undefined) return found === f.from.trim() ? 'from' : 'to'
  const head = message.slice(0, headLength).replace(/["“”].*$/s, '')
  let first: { field: Field; at: number } | undefined
  for (const [field, words, only] of fieldWords) {
    const at = only && only !== f.kind ? -1 : head.search(words)
    if (at >= 0 && (!first || at < first.at)) first = { field, at }
  }
  return first?.field ?? (/\b(secret|password)\b/i.test(message) ? 'secret' : undefined)
}

/** Whether a refusal to save means that somebody else has changed or removed what was edited. */
export const isConflict = (code: Code): boolean =>
  code === Code.Aborted || code === Code.FailedPrecondition || code === Code.NotFound
