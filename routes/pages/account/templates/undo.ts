import { html, type Html } from '../../html.ts'
import type { View } from './view.ts'

/** Returns the form to undo a change by a link. */
export const showUndo = ({ t }: View): Html => html`<p>${t.undoHint}</p>
<button class="wide">${t.undoButton}</button>
`
