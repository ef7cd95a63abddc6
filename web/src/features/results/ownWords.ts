// What a director adds to the report of a campaign in her own words, as a form has it.
import type { GetWordsResponse, ReportWords } from '@/gen/linktrial/v1/report_pb'
import { utc } from '@/lib/format'

/** One text of the form. */
export interface WordsField {
  /** Of a remark that of its chapter, after a prefix. */ key: string
  label: string
  help: string
  /** In characters. */ most: number
  /** 1: it has one line. */ rows: number
}

/** Texts by the key of their field. */
export type WordsTexts = Record<string, string>

const remark = 'remark:'

/** Title, author and summary, then a remark for each chapter. */
export function wordsFields(of: GetWordsResponse): WordsField[] {
  return [
    { key: 'title', label: 'Title', help: 'Empty: the one that Linktrial gives', most: of.maxLine, rows: 1 },
    { key: 'author', label: 'Author', help: 'Empty: who saves the words', most: of.maxLine, rows: 1 },
    {
      key: 'summary',
      label: 'Summary',
      help: 'The first chapter. Empty lines divide paragraphs',
      most: of.maxSummary,
      rows: 6,
    },
    ...of.chapters.map((c) => ({
      key: remark + c.key,
      label: `Remark on “${c.title}”`,
      help: 'At the end of the chapter',
      most: of.maxRemark,
      rows: 3,
    })),
  ]
}

export function wordsTexts(words: ReportWords | undefined): WordsTexts {
  const texts: WordsTexts = {
    title: words?.title ?? '',
    author: words?.author ?? '',
    summary: words?.summary ?? '',
  }
  for (const [chapter, text] of Object.entries(words?.remarks ?? {})) texts[remark + chapter] = text
  return texts
}

/** The texts as the orchestrator takes them. */
export function wordsRequest(texts: WordsTexts) {
  const remarks: Record<string, string> = {}
  for (const [key, text] of Object.entries(texts))
    if (key.startsWith(remark) && text.trim()) remarks[key.slice(remark.length)] = text
  return { title: texts.title ?? '', author: texts.author ?? '', summary: texts.summary ?? '', remarks }
}

/** Characters, as the orchestrator counts them: not those of UTF-16, and none at the ends. */
export const characters = (text: string): number => [...text.trim()].length

/** Why a text is refused, before it is sent; empty: it is not. */
export function textProblem(f: WordsField, text: string): string {
  const n = characters(text)
  return n > f.most ? `${n} characters, expected at most ${f.most}.` : ''
}

/** Whether both say the same, whatever blanks are at the ends. */
export const sameText = (a = '', b = ''): boolean => a.trim() === b.trim()

/** Who saved the words, and when; undefined: there were none yet. */
export function savedText(words: ReportWords | undefined): string {
  if (!words) return 'Nobody has saved words for this report yet.'
  const empty = !Object.values(wordsTexts(words)).some(Boolean)
  return `${empty ? 'Removed' : 'Saved'}${words.by ? ` by ${words.by}` : ''} ${utc(words.at)}, version ${words.version}.`
}
