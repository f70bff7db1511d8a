// Makes the pictures of README.md and docs/: node scripts/pictures.mjs PROGRAM FOLDER [NAME …]
// Each picture is a recording of the real program in a terminal (tmux), drawn as SVG. A moving picture has every screen that
// the terminal showed, for as long as it showed it; pauses are shortened.
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [program, folder, ...names] = process.argv.slice(2);
const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const work = "/tmp/swarm-pictures"; // its paths are in the pictures
const session = "swarm-pictures";

const prompt = /\$$/; // on the last line

// What is recorded. `example` is a folder of examples/ whose README has the commands; `keys` are typed instead. `slow` has
// the agents of a script take their time, as models do.
const pictures = [
  { name: "repl-moving", example: "repl", moving: true, columns: 92, rows: 24, slow: "1200ms", keys: [
    "swarm\n", /@reviewer.*idle|reviewer/, "@pm Plan a small tool &\n", "@builder Build $pm\n", /Wrote both/,
    "@pm Plan the next step -> @builder Build it -> @reviewer Review $builder against $pm\n", /APPROVED/, "/quit\n", prompt] },
  { name: "board", example: "review", columns: 92, rows: 22, slow: "1500ms", keys: ["cat change.diff | swarm up\n", /summary +\S* *(executing|running|completed)/], still: /running|executing|started/ },
  { name: "pipeline", example: "pipeline", columns: 92, rows: 52 },
  { name: "loop", example: "loop", columns: 92, rows: 52 },
  { name: "team", example: "team", columns: 112, rows: 52 },
  { name: "repl", example: "repl", columns: 92, rows: 52 },
  { name: "coding-agents", example: "coding-agents", columns: 92, rows: 52 },
  { name: "local-model", example: "local-model", columns: 92, rows: 52 },
  { name: "review", example: "review", columns: 92, rows: 52 },
  { name: "ci", example: "ci", columns: 92, rows: 52 },
];

const tmux = (...args) => execFileSync("tmux", ["-L", session, ...args], { encoding: "utf8" });
const sleep = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

function record(picture) {
  const dir = join(work, picture.example);
  rmSync(work, { recursive: true, force: true });
  mkdirSync(join(work, "bin"), { recursive: true });
  symlinkSync(resolve(program), join(work, "bin", "swarm"));
  cpSync(join(root, "examples", picture.example), dir, { recursive: true });
  if (picture.slow) {
    const says = join(dir, "swarm", "says.yaml");
    writeFileSync(says, readFileSync(says, "utf8").replaceAll("say:", `sleep: ${picture.slow}, say:`));
  }
  const keys = picture.keys ?? [...readFileSync(join(dir, "README.md"), "utf8").match(/```sh\n([^]*?)```/)[1].trimEnd().split("\n").flatMap((line) => [line + "\n", prompt])];
  const shell = ["env", "-i", `HOME=${work}/home`, `SWARM_HOME=${work}/home`, `PATH=${work}/bin:/usr/bin:/bin`, "TERM=tmux-256color", "COLORTERM=truecolor", "LANG=C.UTF-8", "PS1=$ ", "sh"];
  mkdirSync(join(work, "home"));
  tmux("-f", "/dev/null", "new-session", "-d", "-s", session, "-c", dir, "-x", String(picture.columns), "-y", String(picture.rows), ...shell);
  const frames = [];
  let last = "", since = Date.now();
  const look = () => {
    const screen = tmux("capture-pane", "-e", "-p", "-t", session).trimEnd();
    if (screen !== last) {
      const now = Date.now();
      if (frames.length) frames.at(-1).ms = now - since;
      frames.push({ screen, ms: 0 });
      last = screen;
      since = now;
    }
    return screen.replaceAll(/\x1b\[[0-9;]*m/g, "");
  };
  const until = (wanted) => {
    for (const start = Date.now(); !wanted.test(look()); sleep(30)) {
      if (Date.now() - start > 30_000) throw new Error(`${picture.name}: no ${wanted} on\n${look()}`);
    }
  };
  try {
    until(prompt);
    let still = "";
    for (const key of keys) {
      if (key instanceof RegExp) {
        until(key);
        for (let i = 0; i < 8; i++, sleep(30)) look();
        continue;
      }
      for (const letter of key) {
        if (letter === "\n") until({ test: (screen) => screen.includes(key.trim().slice(0, 20)) });
        tmux("send-keys", "-t", session, ...(letter === "\n" ? ["Enter"] : ["-l", letter]));
        if (picture.moving) {
          sleep(25);
          look();
        }
      }
    }
    if (picture.still) still = frames.findLast((f) => picture.still.test(f.screen))?.screen;
    return { frames, still: still || frames.at(-1).screen };
  } finally {
    tmux("kill-server");
  }
}

// The colours of the terminal.
const palette = ["#20242c", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dae0", "#7f848e", "#ff8a94", "#b5e090", "#ffd896", "#8cc8ff", "#e09cf5", "#7fd6e0", "#ffffff"];
const cube = (n) => n < 16 ? palette[n] : n > 231 ? grey(8 + (n - 232) * 10) : rgb(...[Math.floor((n - 16) / 36), Math.floor((n - 16) / 6) % 6, (n - 16) % 6].map((x) => x && 55 + x * 40));
const rgb = (...c) => "#" + c.map((x) => Number(x).toString(16).padStart(2, "0")).join("");
const grey = (x) => rgb(x, x, x);
// Browsers collapse blanks, also those that xml:space="preserve" is to keep. No-break ones stay.
const escape = (s) => s.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("  ", "\u00a0\u00a0");
const wide = 8, high = 18, margin = 12;

// runs are the pieces of a line that look the same.
function runs(line, style) {
  const pieces = [];
  for (const part of line.split(/(\x1b\[[0-9;]*m)/)) {
    const code = part.match(/^\x1b\[([0-9;]*)m$/);
    if (!code) {
      if (part) pieces.push({ text: part, ...style });
      continue;
    }
    const c = code[1].split(";").map(Number);
    for (let i = 0; i < c.length; i++) {
      const n = c[i];
      if (n === 0) for (const k of Object.keys(style)) delete style[k];
      else if (n === 1) style.bold = true;
      else if (n === 2) style.dim = true;
      else if (n === 3) style.italic = true;
      else if (n === 4) style.under = true;
      else if (n === 7) style.reverse = true;
      else if (n === 22) delete style.bold, delete style.dim;
      else if (n === 23) delete style.italic;
      else if (n === 24) delete style.under;
      else if (n === 27) delete style.reverse;
      else if (n === 39) delete style.fg;
      else if (n === 49) delete style.bg;
      else if (n >= 30 && n < 38) style.fg = palette[n - 30];
      else if (n >= 90 && n < 98) style.fg = palette[n - 82];
      else if (n >= 40 && n < 48) style.bg = palette[n - 40];
      else if (n >= 100 && n < 108) style.bg = palette[n - 92];
      else if (n === 38 || n === 48) {
        const key = n === 38 ? "fg" : "bg";
        if (c[i + 1] === 5) (style[key] = cube(c[i + 2])), (i += 2);
        else (style[key] = rgb(c[i + 2], c[i + 3], c[i + 4])), (i += 4);
      }
    }
  }
  return pieces;
}

// draw is one screen. Lines that other screens have too are drawn once.
function draw(screen, lines) {
  const style = {};
  return screen.split("\n").map((line, row) => {
    let x = 0, out = "";
    for (const piece of runs(line, style)) {
      const n = [...piece.text].length;
      let fg = piece.fg ?? "#d7dae0", bg = piece.bg;
      if (piece.reverse) [fg, bg] = [bg ?? "#20242c", fg];
      if (bg) out += `<rect x="${x * wide}" width="${n * wide}" height="${high}" fill="${bg}"/>`;
      const text = piece.text.trimEnd(), lead = text.length - text.trimStart().length;
      if (text.trim()) {
        out += `<text x="${(x + lead) * wide}" y="13" textLength="${([...text].length - lead) * wide}" fill="${fg}"` + (piece.bold ? ' font-weight="bold"' : "") +
          (piece.dim ? ' opacity=".6"' : "") + (piece.italic ? ' font-style="italic"' : "") + (piece.under ? ' text-decoration="underline"' : "") + `>${escape(text.trim())}</text>`;
      }
      x += n;
    }
    if (!out) return "";
    if (!lines.has(out)) lines.set(out, `l${lines.size}`);
    return `<use href="#${lines.get(out)}" y="${row * high}"/>`;
  }).join("");
}

function svg(picture, { frames, still }) {
  const lines = new Map();
  let rows = picture.rows, body, style = "";
  if (!picture.moving) {
    rows = still.split("\n").length;
    body = draw(still, lines);
  } else {
    const shown = frames.map((f) => ({ ...f, ms: Math.min(f.ms, 1500) }));
    shown.at(-1).ms = 3000;
    const whole = shown.reduce((sum, f) => sum + f.ms, 0);
    let at = 0;
    style = "g.f{visibility:hidden}";
    body = shown.map((f, i) => {
      const percent = (ms) => ((ms / whole) * 100).toFixed(2);
      const from = percent(at), to = percent((at += f.ms));
      style += `@keyframes k${i}{${i ? `0%{visibility:hidden}` : ""}${from}%{visibility:visible}${to}%{visibility:hidden}}#f${i}{animation:k${i} ${whole}ms step-end infinite}`;
      return `<g class="f" id="f${i}">${draw(f.screen, lines)}</g>`;
    }).join("\n");
  }
  const w = picture.columns * wide + 2 * margin, h = rows * high + 2 * margin;
  const defs = [...lines].map(([out, id]) => `<g id="${id}">${out}</g>`).join("\n");
  return `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 ${w} ${h}" width="${w}" height="${h}" font-family="ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="13">
<style>${style}</style><rect width="${w}" height="${h}" rx="6" fill="#20242c"/>
<defs>${defs}</defs>
<g transform="translate(${margin} ${margin})">${body}</g></svg>
`;
}

mkdirSync(folder, { recursive: true });
for (const picture of pictures) {
  if (names.length && !names.includes(picture.name)) continue;
  const text = svg(picture, record(picture));
  writeFileSync(join(folder, picture.name + ".svg"), text);
  console.log(`${join(folder, picture.name + ".svg")}  ${Math.ceil(text.length / 1024)} KB`);
  if (text.length > 200 * 1024) throw new Error(`${picture.name} has more than 200 KB`);
}
rmSync(work, { recursive: true, force: true });
