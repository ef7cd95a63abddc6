// Problems of a plan at the fields of the form: the orchestrator names the value
// that each is about ("treatments[1].options.mss").
import type { InjectionKey, Ref } from 'vue'
import type { Problem } from '@/gen/linktrial/v1/operator_pb'
import { lineOf, type Path, type PlanText } from './text'

/** What the form's fields look up: the problems that belong to values of this text. */
export const planProblems: InjectionKey<Readonly<Ref<Problem[]>>> = Symbol('problems of the plan')

/** "treatments[1].options.mss" as a path of the text. */
export function stepsOf(path: string): Path {
  return path
    .split(/\.|(?=\[\d+\])/)
    .filter(Boolean)
    .map((s) => (/^\[\d+\]$/.test(s) ? Number(s.slice(1, -1)) : s))
}

/** A path as the orchestrator writes it. */
export function pathOf(steps: Path): string {
  return steps.reduce<string>((out, s) => (typeof s === 'number' ? `${out}[${s}]` : out ? `${out}.${s}` : s), '')
}

/** Whether a value is the field's, or a part of it: an element of a list that one field has. */
function within(path: string, field: string): boolean {
  return path === field || path.startsWith(`${field}.`) || path.startsWith(`${field}[`)
}

/**
 * The problems that fields may show. In a plan of groups a path is as the group reads
 * it, which may be another place of the text: only those whose line is the path's.
 */
export function ofFields(problems: Problem[], text: PlanText, grouped: boolean): Problem[] {
  return problems.filter((p) => p.path && (!grouped || lineOf(text, stepsOf(p.path)) === p.line))
}

export function problemsAt(problems: Problem[], field: string): Problem[] {
  return problems.filter((p) => within(p.path, field))
}

/** The problems of a part of the plan that none of its own fields shows. */
export function problemsBeside(problems: Problem[], part: string, fields: string[]): Problem[] {
  const shown = fields.flatMap((f) => problemsAt(problems, `${part}.${f}`))
  return problemsAt(problems, part).filter((p) => !shown.includes(p))
}

/** What to say at the field: without its path, which the field itself is. */
export function atField(problems: Problem[], field: string): string {
  return problemsAt(problems, field)
    .map((p) => {
      const text = p.message.startsWith(`${p.path}: `) ? p.message.slice(p.path.length + 2) : p.message
      return p.path !== field && text !== p.message ? `${p.path.slice(field.length)}: ${text}` : text
    })
    .join('; ')
}

/** The form's field that shows a problem, by the attribute data-field; the innermost one. */
export function fieldOf(root: ParentNode, problem: Problem): HTMLElement | undefined {
  return [...root.querySelectorAll<HTMLElement>('[data-field]')]
    .filter((e) => within(problem.path, e.dataset.field ?? ''))
    .sort((a, b) => (b.dataset.field ?? '').length - (a.dataset.field ?? '').length)[0]
}

/** Moves the focus to the first field, in the order of the page, that shows one of the problems; reports whether there is one. */
export function focusFirst(root: ParentNode, problems: Problem[]): boolean {
  const first = [...root.querySelectorAll<HTMLElement>('[data-field]')].find((e) =>
    problems.some((p) => fieldOf(root, p) === e),
  )
  const control = first?.querySelector<HTMLElement>(
    'input:not(:disabled), select:not(:disabled), textarea:not(:disabled), summary',
  )
  control?.focus()
  control?.scrollIntoView({ block: 'center' })
  return !!control
}
