import { Store } from '../store/store';

/** A Comment is a remark about one line of a diff. It waits in the page until the review is sent. */
export interface Comment {
  run: string;
  author: string;
  turn?: string;
  path: string;
  side: 'old' | 'new';
  line: number;
  code: string;
  text: string;
}

export const comments = new Store<{ list: Comment[] }>({ list: [] });

const same = (a: Comment, b: Omit<Comment, 'text'>) => a.run === b.run && a.path === b.path && a.side === b.side && a.line === b.line && a.turn === b.turn;

export function setComment(comment: Comment): void {
  const rest = comments.get().list.filter((one) => !same(one, comment));
  comments.set({ list: comment.text.trim() ? [...rest, comment] : rest });
}

/** takeComments removes the comments for one author: they were sent. */
export function takeComments(run: string, author: string): void {
  comments.set({ list: comments.get().list.filter((one) => one.run !== run || one.author !== author) });
}

/** reviewText makes one message of the comments for an author, file by file. */
export function reviewText(list: Comment[]): string {
  const lines = ['Review of your changes:'];
  for (const one of list.toSorted((a, b) => a.path.localeCompare(b.path) || a.line - b.line)) {
    lines.push('', `${one.path}:${one.line}${one.side === 'old' ? ' (before)' : ''}`);
    if (one.code.trim()) lines.push(`> ${one.code.trim().slice(0, 200)}`);
    lines.push(one.text.trim());
  }
  return lines.join('\n');
}
