package prompt

import (
	"html"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A beginning is the folded start of one of our own lines: in small letters, without blanks. `#`
// stands for any digit and `-` for a dash.
type beginning struct {
	words string
	after signs
}

// Signs say what must stand before the words. Without them, ordinary text with the same words is
// left alone.
type signs int

const (
	withAny     signs = iota
	withRule          // two dashes, or three other signs that lines are drawn with
	withFence         // three dashes
	withBracket       // a bracket, or a rule
	withHeading       // the mark of a heading in Markdown or HTML, or a rule below
	withTitle         // the same, and nothing follows the words
	withParen         // a parenthesis
)

// A lineTable holds lines of ours by their first letter, so that most lines are compared with
// nothing.
type lineTable [256][]beginning

// beginnings are the lines of ours in all prompts.
var beginnings = lineTable{
	'c': {{"contextpack", withRule}},
	'e': {{"endoutput", withHeading}, {"endofoutput", withHeading}, {"endoftheoutput", withHeading},
		{"endmessage", withHeading}, {"endofmessage", withHeading}, {"endofthemessage", withHeading},
		{"endcontextpack", withHeading}, {"endofcontextpack", withHeading}, {"endofthecontextpack", withHeading}, {"end--", withRule}},
	'm': {{"message#", withRule}, {"messagefrom", withRule}, {"message", withFence}},
	'o': {{"outputfromtask", withRule}, {"outputalreadysent", withRule}, {"outputfrom@", withBracket}},
	's': {{"sharedfindings", withHeading}},
	'w': {{"whyattempt", withRule}},
	'y': {{"yourswarmtaskid", withAny}, {"yourswarmagentid", withAny}, {"youareoniteration", withAny}},
}

// drawn lists the signs that draw lines, and that emphasize.
const drawn = "*_=~+"

// A folded line is a line as a tolerant reader sees it. Such a reader ignores blanks, case,
// invisible characters, markup, and the shapes of dashes and letters.
type folded struct {
	at int // the place of the first visible character; -1 = there is none

	// Before the first letter.
	dashes             int
	drawn              [len(drawn)]int
	hash, bracket, tag bool
	paren              bool
	marks              int  // how many of these signs
	lettered           bool // the first letter was read

	words [48]byte // from the first letter on: letters, digits, dashes and @
	n     int      // the length of words
}

// has reports whether the signs of a line of ours stand before the words. rest is the text after the
// line.
func (f *folded) has(b beginning, rest string) bool {
	switch b.after {
	case withRule:
		return f.dashes >= 2 || slices.Max(f.drawn[:]) >= 3
	case withFence:
		return f.dashes >= 3
	case withBracket:
		return f.bracket || f.has(beginning{after: withRule}, "")
	case withParen:
		return f.paren
	case withTitle:
		return f.n == len(b.words) && f.has(beginning{b.words, withHeading}, rest)
	case withHeading:
		below := strings.TrimLeft(rest, "\r\n \t")
		return f.hash || f.tag || f.dashes >= 2 || slices.Max(f.drawn[:]) >= 2 ||
			f.n == len(b.words) && (strings.HasPrefix(below, "==") || strings.HasPrefix(below, "--"))
	}
	return true
}

// ownLine reports whether a reader may take a line for one of those in the table. at is the place for the `\`:
// before the first visible character. letter is the place of the first letter. rest is the text
// after the line.
func ownLine(ours *lineTable, line, rest string) (at, letter int, ok bool) {
	if ours == &swarmLines {
		if at, letter, ok := evidenceLine(line); ok {
			return at, letter, true
		}
	}
	f := folded{at: -1}
	letter = len(line)
	for i := 0; i < len(line) && f.n < len(f.words); {
		r, size, had := rune(line[i]), 1, f.n
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(line[i:])
		}
		switch {
		case r == '<' && tagLength(line[i:]) > 0:
			size, f.tag = tagLength(line[i:]), f.tag || !f.lettered
			f.see(i)
		case r == '&':
			if end := strings.IndexByte(line[i:min(len(line), i+12)], ';'); end > 1 {
				if meant := html.UnescapeString(line[i : i+end+1]); len(meant) <= end {
					size = end + 1
					r, _ = utf8.DecodeRuneInString(meant)
				}
			}
			f.add(r, i)
		default:
			f.add(r, i)
		}
		i += size
		switch {
		case had > 0 || f.n == 0:
		case f.n == 1 && i < len(line) && listSign(line[i:]):
			f.n, f.lettered = 0, false
		default:
			letter = i - size
			if c := first(f.words[0]); len(ours[c]) == 0 || ours == &beginnings && !promising(c, f.dashes, f.marks) {
				return 0, letter, false
			}
		}
		if had < fewWords && f.n >= fewWords && !f.maybe(ours) {
			return 0, letter, false
		}
	}
	if f.n == 0 {
		return 0, letter, false
	}
	for _, b := range ours[first(f.words[0])] {
		if begins(f.words[:f.n], b.words, false) && f.has(b, rest) {
			return f.at, letter, true
		}
	}
	return 0, letter, false
}

// evidenceLine reports whether a reader may take a line for evidence in the prompts of a swarm, such
// as [takao/3]: an agent and its iteration in brackets, with no letter before them. at and letter are
// as in ownLine.
func evidenceLine(line string) (at, letter int, ok bool) {
	at = -1
	for i, r := range line {
		if unseen(r) {
			continue
		}
		if at < 0 {
			at = i
		}
		text := line[i:min(len(line), i+maxReference)]
		if r == '&' { // an entity may be a bracket
			text = html.UnescapeString(text)
		}
		switch {
		case startsReference(text):
			return at, i + 1, true
		case unicode.IsLetter(r):
			return 0, 0, false
		}
	}
	return 0, 0, false
}

// maxReference is how far a reference at the beginning of a line is looked for, in bytes.
const maxReference = 200

// startsReference reports whether a text begins with a bracket, a name, a slash and a digit.
func startsReference(text string) bool {
	r, size := utf8.DecodeRuneInString(text)
	if r != '[' && (r < utf8.RuneSelf || !strings.ContainsRune(brackets, r) && norm.NFKC.String(string(r)) != "[") {
		return false
	}
	named := false
	for i, r := range text[size:] {
		switch {
		case strings.ContainsRune("/∕⁄／⧸", r):
			return named && startsNumber(text[size+i+utf8.RuneLen(r):])
		case unicode.IsLetter(r):
			named = true
		case unseen(r), unicode.IsDigit(r), unicode.Is(unicode.Pd, r), strings.ContainsRune("@_*`.\\", r):
		default:
			return false
		}
	}
	return false
}

// startsNumber reports whether the first visible character of a text is a digit.
func startsNumber(text string) bool {
	for _, r := range text {
		if !unseen(r) {
			return unicode.IsDigit(r)
		}
	}
	return false
}

// first returns a first letter as the table of beginnings has it: rn looks like m, vv like w, 0
// like o.
func first(c byte) byte {
	switch c {
	case 'r':
		return 'm'
	case 'v':
		return 'w'
	}
	return c
}

// fewWords is how much of a line's words rules out most lines. All lines of ours have more.
const fewWords = 4

// maybe reports whether a line that is read so far may be one of those in the table.
func (f *folded) maybe(ours *lineTable) bool {
	return slices.ContainsFunc(ours[first(f.words[0])], func(b beginning) bool { return begins(f.words[:f.n], b.words[:fewWords], true) })
}

// begins reports whether folded words begin like a line of ours. Signs in between do not count. If more
// words may come, what they may complete counts.
func begins(words []byte, ours string, more bool) bool {
	i := 0
	for k := range len(ours) {
		for i < len(words) && (words[i] == '-' || words[i] == '@') && words[i] != ours[k] {
			i++
		}
		if i == len(words) {
			return more
		}
		digit := '0' <= words[i] && words[i] <= '9'
		switch c := ours[k]; {
		case words[i] == c, c == '#' && digit, c == 'o' && words[i] == '0', (c == 'i' || c == 'l') && strings.IndexByte("il1", words[i]) >= 0:
			i++
		case i+1 < len(words) && (c == 'm' && string(words[i:i+2]) == "rn" || c == 'w' && string(words[i:i+2]) == "vv"):
			i += 2
		case more && i+1 == len(words) && (c == 'm' && words[i] == 'r' || c == 'w' && words[i] == 'v'):
			return true
		default:
			return false
		}
	}
	return true
}

// tagLength returns the length of the HTML tag with which s begins.
func tagLength(s string) int {
	name := strings.TrimPrefix(s[1:], "/")
	if name == "" || name[0]|0x20 < 'a' || name[0]|0x20 > 'z' {
		return 0
	}
	return strings.IndexByte(s[:min(len(s), 100)], '>') + 1
}

// see notes the first visible character.
func (f *folded) see(at int) {
	if f.at < 0 {
		f.at = at
	}
}

// add folds one character at a place of the line.
func (f *folded) add(r rune, at int) {
	if r < utf8.RuneSelf {
		f.addASCII(byte(r), at)
		return
	}
	if c, ok := lookalikes()[r]; ok {
		f.see(at)
		if c == '-' {
			f.dash(1)
		} else {
			f.letter(c)
		}
		return
	}
	switch {
	case r == '\u2014' || r == '\u2015' || r == '\u2E3A' || r == '\u2E3B' || r == '\uFE58' || r == '\uFE31': // dashes as long as three
		f.see(at)
		f.dash(3)
		return
	case unicode.Is(unicode.Pd, r):
		f.see(at)
		f.dash(1)
		return
	case r >= 0x1F150 && r <= 0x1F169, r >= 0x1F170 && r <= 0x1F189: // white letters on black
		f.see(at)
		f.letter('a' + byte((r-0x1F150)%32))
		return
	case r >= 0x1F1E6 && r <= 0x1F1FF: // letters of flags
		f.see(at)
		f.letter('a' + byte(r-0x1F1E6))
		return
	case unseen(r):
		return
	}
	var buf [utf8.UTFMax]byte
	if whole := norm.NFKD.Properties(buf[:utf8.EncodeRune(buf[:], r)]).Decomposition(); whole != nil {
		for len(whole) > 0 {
			part, size := utf8.DecodeRune(whole)
			if whole = whole[size:]; part != r {
				f.add(part, at)
			}
		}
		return
	}
	f.see(at)
	switch {
	case unicode.IsDigit(r):
		f.word('1')
	case unicode.IsLetter(r):
		f.letter('.') // a letter, but none of ours
	case strings.ContainsRune(brackets, r):
		f.bracket = true
		f.marks++
	}
}

// brackets are the signs that look like [.
const brackets = "【〔〖〘〚⟦⟨❲⁅⦋"

func (f *folded) addASCII(c byte, at int) {
	if c <= ' ' || c == 0x7f {
		return
	}
	f.see(at)
	switch {
	case 'a' <= c && c <= 'z':
		f.letter(c)
	case 'A' <= c && c <= 'Z':
		f.letter(c | 0x20)
	case '0' <= c && c <= '9':
		f.word(c)
	case c == '-':
		f.dash(1)
	case c == '@':
		f.word(c)
	case f.lettered:
	case c == '(':
		f.paren = true
	case classes[c] == mark:
		f.marks++
		f.hash, f.bracket = f.hash || c == '#', f.bracket || c == '['
		if i := strings.IndexByte(drawn, c); i >= 0 {
			f.drawn[i]++
		}
	}
}

func (f *folded) letter(c byte) {
	f.lettered = true
	f.word(c)
}

// word adds to the words. A digit before the first letter belongs to a list, and is ignored.
func (f *folded) word(c byte) {
	if f.lettered && f.n < len(f.words) {
		f.words[f.n] = c
		f.n++
	}
}

func (f *folded) dash(n int) {
	if !f.lettered {
		f.dashes += n
		return
	}
	for range n {
		f.word('-')
	}
}

// unseen reports whether r is invisible: blanks, control and format characters, marks on other
// letters, and blank letters.
func unseen(r rune) bool {
	switch r {
	case '\u115F', '\u1160', '\u3164', '\uFFA0', '\u2800', '\uFFFC':
		return true
	}
	return unicode.In(r, unicode.Z, unicode.Cc, unicode.Cf, unicode.Co, unicode.M)
}

// lookalikes maps characters that look like one of our letters, and that neither case folding nor
// decomposition turns into it. They come from Unicode's table of confusable characters (UTS 39).
// Some small capitals and lines that pass for dashes are added.
var lookalikes = sync.OnceValue(func() map[rune]byte {
	all := map[rune]byte{}
	for _, of := range []struct {
		letter byte
		like   string
	}{
		{'-', "\u00AD¯˗ˉ۔ᅳ‾⁃⁻₋−∸─━┄┅┈┉╌╍═╴╶╸╺▔⎯⏤➖⨩⨪Ⲻ⸚⼀ㅡ㇐一ꟷ﬩﹉﹊﹋﹌ーｰ￣"},
		{'a', "ɑΑαАаᎪᗅẚ⍶⍺ꓮ𐊠𖽀ᴀ"},
		{'c', "ȼϲϹСсҪҫᏟᴄⲤⲥꓚꮯ𐊢𐌂𐐕𐐽𐔜𑣩𑣲🝌"},
		{'d', "ÐĐđƉƌɖɗԁᎠᏧᑯᗞᗪꓒꓓᴅ"},
		{'e', "ɆɇΕЕеҽҿᎬ℮⋿ⴹꓰꬲ𐊆𑢦𑢮ᴇεє"},
		{'f', "ſƑƒϜքᖴᵮẛẝꓝꞘꞙꬵ𐊇𐊥𐔥𑢢𑣂𝈓ꜰ"},
		{'g', "ƍǤǥɠɡԌԍցᏀᏳᶃꓖɢ"},
		{'h', "ĦħɦΗНнћҢңһӇӈӉӊհᎻᏂᏲᕼⱧⲎꓧꚕ𐋏ʜ"},
		{'i', "ıɨɩɪ˛ͺιіӏᎥᵻᵼ⍳⍸ꙇꭵ𑣃ŁłƖƗƚǀɫɭΙІӀ\u05C0\u05D5\u05DF\u0627\u0661\u0673۱\u07CAᏞᒪᛁ∣⏽ⲒⳐⵏꓡꓲ￨𐊊𐌉𐌠𐐛𐔦𑢣𑢲𖼖𖼨𝈪\U0001E8C7ʟ"},
		{'k', "ƙΚКкҚқҞҟᏦᛕⱩⲔꓗꝀ𐔘ᴋκ"},
		{'m', "ɱΜϺМмӍӎᎷᗰᛖᵯⲘꓟ𐊰𐌑𑜀𑣣ᴍ"},
		{'n', "ƝƞɳΝηոռᵰⲚꓠ𐆎𐔓ɴп"},
		{'o', "ØøƟɵΘΟθοσОоѲѳӨөՕօ\u05E1\u0647\u0665\u06BE\u06C1\u06D5۵\u06FF\u07C0०০੦૦ଠ୦௦\u0C02౦\u0C82೦\u0D02ഠ൦\u0D82๐໐ဝ၀ჿዐᎾᏫᴏᴑ⊖⊝⍬Ⲟⲟⴱⵁⵔ〇ꓳꝊꝋꬽꬾꭴꮎꮻ𐊒𐊫𐐄𐐬𐓂𐓪𐔖𑓐𑢵𑣈𑣗𑣠𝈚🜔"},
		{'p', "ƥΡρРрᏢᑭᵽ⍴Ⲣⲣꓑ𐊕ᴘ"},
		{'r', "ƦɍɼɽгғᎡᏒᖇᴦᵲⲅꓣꭇꭈꮁ𐒴𖼵𝈖ʀ"},
		{'s', "ƽʂЅѕՏᏕᏚᵴꓢꜱꮪ𐊖𐐠𐑈𑣁𖼺"},
		{'t', "ŦŧƭƮȾΤТтҬҭᎢᵵ⊤⍡⟙Ⲧꓔ𐊗𐊱𐌕𑢼𖼊🝨ᴛτ"},
		{'u', "ɄʋυՍսሀᏌᑌᴜᵾ∪⋃ꓴꞟꭎꭒꮜ𐓎𐓶𑢸𑣘𖽂"},
		{'v', "νѴѵ\u05D8\u0667۷Ꮩᐯᴠ∨⋁ⴸꓦꛟꮩ𐆗𐔝𑜆𑢠𑣀𖼈𝈍🜈"},
		{'w', "ɯѡѽԜԝաᎳᏔᴡꓪꝡꮃ𑓅𑜊𑜎𑜏𑣦𑣯ω"},
		{'x', "×ΧХхҲҳᕁᕽ᙭᙮ᚷ╳⤫⤬⨯⨰ⲬⵝꓫꞳ𐆖𐊐𐊴𐌗𐌢𐔧𑣬χ"},
		{'y', "ƴɎɏɣʏΥγУуҮүҰұყᎩᎽᶌỿⲨꓬꭚ𐊲𑢤𑣜𖽃"},
	} {
		for _, r := range of.like {
			all[r] = of.letter
		}
	}
	return all
})

// A reading is a line as a terminal may show it.
type reading struct {
	text   []byte
	from   []int // the place in the line of each byte of text
	starts []int // the places in text where a reader may see a line begin
}

// readings returns the other ways to read a line that moves the cursor of a terminal or has hidden
// letters:
//   - without control sequences;
//   - with backspaces applied;
//   - with the hidden letters shown.
func readings(line string) []reading {
	if strings.IndexByte(line, '\b') < 0 && strings.IndexByte(line, '\x1b') < 0 && !strings.Contains(line, "\u009b") && !strings.Contains(line, "\xf3\xa0") {
		return nil
	}
	all := []reading{{starts: []int{0}}, {starts: []int{0}}, {starts: []int{0}}}
	bare, struck, shown := &all[0], &all[1], &all[2]
	for i := 0; i < len(line); {
		r, size := utf8.DecodeRuneInString(line[i:])
		back := 0
		switch {
		case r == '\b':
			back = 1
		case r == '\x1b' || r == '\u009b':
			size, back = controlSequence(line[i:])
		case r >= 0xE0020 && r <= 0xE007E:
			shown.put(string(r-0xE0000), i)
		default:
			for k := range all {
				all[k].put(line[i:i+size], i)
			}
		}
		if back != 0 {
			bare.starts = append(bare.starts, len(bare.text))
		}
		for ; back > 0 && len(struck.text) > 0; back-- {
			_, last := utf8.DecodeLastRune(struck.text)
			struck.text, struck.from = struck.text[:len(struck.text)-last], struck.from[:len(struck.from)-last]
		}
		i += size
	}
	return all
}

func (r *reading) put(text string, at int) {
	r.text = append(r.text, text...)
	for k := range len(text) {
		r.from = append(r.from, at+k)
	}
}

// controlSequence returns the length of the control sequence with which s begins, and how many
// characters it moves the cursor back. back is 0 if the sequence only changes colours. It is
// negative if the cursor moves elsewhere, or to an unknown place.
func controlSequence(s string) (size, back int) {
	_, size = utf8.DecodeRuneInString(s)
	if s[0] == '\x1b' {
		if len(s) == 1 {
			return 1, -1
		}
		switch s[1] {
		case '[':
			size = 2
		case ']', 'P', 'X', '^', '_': // a text for the terminal itself
			if end := strings.IndexAny(s[2:], "\a\x1b"); end >= 0 {
				return 2 + end + 1, -1
			}
			return 1, -1
		default: // one more character, or the name of a character set
			for size < len(s) && s[size] >= 0x20 && s[size] < 0x30 {
				size++
			}
			return min(size+1, len(s)), -1
		}
	}
	parameters := size
	for size < len(s) && s[size] >= 0x20 && s[size] < 0x40 {
		size++
	}
	switch {
	case size == len(s) || s[size] > 0x7e:
		return parameters, -1
	case s[size] == 'm':
		return size + 1, 0
	case s[size] == 'D':
		n, _ := strconv.Atoi(s[parameters:size])
		return size + 1, max(1, n)
	}
	return size + 1, -1
}
