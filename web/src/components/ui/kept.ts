// The value of an input field whose component listens to the event change: it learns what
// was typed only at the end. With :value, Vue sets the field whenever its component is
// drawn again, and what somebody is typing at that moment is lost. In the form of a plan
// the answer of each check did that. The directive sets the field only when the value that
// it is given has changed.
import type { Directive } from 'vue'

export const vKept: Directive<HTMLInputElement | HTMLTextAreaElement, string | number | undefined> = {
  created: (field, { value }) => void (field.value = String(value ?? '')),
  updated: (field, { value, oldValue }) => {
    if (value !== oldValue) field.value = String(value ?? '')
  },
}
