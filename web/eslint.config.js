// What npm run lint holds src to: what the languages' own recommendations call wrong; layout is the editor's.
import vue from 'eslint-plugin-vue'
import ts from 'typescript-eslint'

export default ts.config(
  { ignores: ['src/gen'] },
  ...ts.configs.recommended,
  ...vue.configs['flat/essential'],
  { rules: { 'prefer-const': ['error', { ignoreReadBeforeAssign: true }] } },
  {
    files: ['**/*.vue'],
    languageOptions: { parserOptions: { parser: ts.parser } },
  },
)
