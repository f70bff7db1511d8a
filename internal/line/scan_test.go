package line

import (
	"fmt"
	"strings"
	"testing"
)

// marked formats a line with its tokens: text as it is, other tokens as kind(…), with ? for unknown
// names.
func marked(text string, team Team) string {
	var b strings.Builder
	for _, t := range Scan(text, team) {
		word := text[t.Start:t.End]
		known := t.Kind != Agent && t.Kind != Reference && t.Kind != CommandWord || t.Known
		switch {
		case t.Kind == Text:
			b.WriteString(word)
		case known:
			fmt.Fprintf(&b, "%s(%s)", t.Kind, word)
		default:
			fmt.Fprintf(&b, "%s?(%s)", t.Kind, word)
		}
	}
	return b.String()
}

func TestScan(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"  ", "  "},
		{" @pm,ba Plan ", " agent(@pm)comma(,)agent(ba) Plan "},
		{"@pm,nosuch --model x Plan", "agent(@pm)comma(,)agent?(nosuch) flag(--model) value(x) Plan"},
		{"@pm --model=x Plan", "agent(@pm) flag(--model=)value(x) Plan"},
		{"@pm --model x --model y", "agent(@pm) flag(--model) value(x) wrong(--model) y"},
		{`@pm \--model`, `agent(@pm) escape(\--)model`},
		{"@", "agent?(@)"},
		{"@pm,", "agent(@pm)comma(,)"},
		{"@notify x", "agent(@notify) x"},
		{`@pm Use $ba's, \$ba, $$ba and $bo`, `agent(@pm) Use reference($ba)'s, escape(\$)ba, $$ba and reference?($bo)`},
		{"@pm Plan -> @ba Write &\n", "agent(@pm) Plan arrow(->) agent(@ba) Write background(&)\n"},
		{"@pm a -> b & c &&", "agent(@pm) a -> b wrong(&) c wrong(&&)"},
		{"-> @ba x -> -> @pm y ->", "wrong(->) agent(@ba) x wrong(->) arrow(->) agent(@pm) y wrong(->)"},
		{`\@ba x \-> @pm y \& z`, `escape(\@)ba x escape(\->) @pm y escape(\&) z`},
		{" # $ba -> @pm & ", " comment(# $ba -> @pm &) "},
		{`\# x`, `escape(\#) x`},
		{"/use @pm", "command(/use) agent(@pm)"},
		{"/usr @nosuch x", "command?(/usr) agent?(@nosuch) argument(x)"},
		{"@pm \xff\x00$ba", "agent(@pm) \xff\x00reference($ba)"},
	} {
		if got := marked(c.text, team); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.text, got, c.want)
		}
	}
}

func TestCommands(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"/help", `/help []`},
		{"/help -> and $x", `/help ["-> and $x"]`},
		{" /status ", `/status []`},
		{"/tasks", `/tasks []`},
		{"/task pm_1", `/task ["pm_1"]`},
		{"/cancel pm_1", `/cancel ["pm_1"]`},
		{"/cancel all", `/cancel ["all"]`},
		{"/cancel @pm", `/cancel ["@pm"] pm`},
		{"/history", `/history []`},
		{"/history @builder-1", `/history ["@builder-1"] builder-1`},
		{"/use @ba", `/use ["@ba"] ba`},
		{"/use ba", `/use ["ba"] ba`},
		{"/model", `/model []`},
		{"/model large", `/model ["large"]`},
		{"/model @pm", `/model ["@pm"] pm`},
		{"/model @pm large", `/model ["@pm" "large"] pm`},
		{"/why @pm", `/why ["@pm"] pm`},
		{"/out  @pm", `/out ["@pm"] pm`},
		{"/retry pm_1", `/retry ["pm_1"]`},
		{"/save my plans/swarm.yaml", `/save ["my plans/swarm.yaml"]`},
		{"/quit", `/quit []`},
	} {
		l, err := Parse(c.text, team)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
		} else if got := written(l); got != c.want {
			t.Errorf("%q is %s, not %s", c.text, got, c.want)
		}
	}
}

// TestComplete has the cursor at |, and shows each completion as the completed line.
func TestComplete(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"@|", "@pm @ba @builder-1 @builder-2 @reviewer @writer @notify"},
		{"@b|", "@ba @builder-1 @builder-2"},
		{"@bu| Build", "@builder-1·Build @builder-2·Build"},
		{"@bu|ilder-9 Build", "@builder-1·Build @builder-2·Build"},
		{"@PM|", "@pm"},
		{"@x|", ""},
		{"@pm,b|", "@pm,ba @pm,builder-1 @pm,builder-2"},
		{"@pm,ba,|", "@pm,ba,builder-1 @pm,ba,builder-2 @pm,ba,reviewer @pm,ba,writer @pm,ba,notify"},
		{"@pm,@w|", "@pm,writer"},
		{"@pm x -> @r|", "@pm·x·->·@reviewer"},
		{"@pm x @r|", ""},
		{"@pm Use $|", "@pm·Use·$pm @pm·Use·$ba @pm·Use·$builder-1 @pm·Use·$builder-2 @pm·Use·$reviewer @pm·Use·$writer"},
		{"@pm Use $builder-|", "@pm·Use·$builder-1 @pm·Use·$builder-2"},
		{"@pm Use $w|'s and $pm", "@pm·Use·$writer's·and·$pm"},
		{"$w|", "$writer"},
		{`@pm Use \$w|`, ""},
		{"@pm Use $$w|", ""},
		{"@pm Use w|", ""},
		{"@pm --model $w|", ""},
		{"/|", "/help /status /tasks /task /cancel /history /use /model /reset /why /out /approve /deny /retry /open /save /quit"},
		{"/st|", "/status"},
		{"/use @r|", "/use·@reviewer"},
		{"/save $w|", ""},
		{"Plan /st|", ""},
		{"|@pm x", ""},
	} {
		text, cursor := strings.Replace(c.text, "|", "", 1), strings.Index(c.text, "|")
		var got []string
		for _, o := range Complete(text, cursor, team, CommandNames()) {
			got = append(got, strings.ReplaceAll(text[:o.Start]+o.Text+text[o.End:], " ", "·"))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q\n got %s\nwant %s", c.text, strings.Join(got, " "), c.want)
		}
	}
	off := team
	off.NoRefs = true
	if got := Complete("@pm $b", 6, off, nil); got != nil {
		t.Errorf("references are off, and %v is offered", got)
	}
}
