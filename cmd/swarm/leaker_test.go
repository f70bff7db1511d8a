package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// toldSecret is in the middle of each secret that the leaker prints, between characters that have
// several encodings.
const toldSecret = "CNRY0123456789"

// leak is an agent that leaks all its secrets, in all encodings: on both outputs, in mail, and in
// topics.
func leak() {
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		if !strings.Contains(value, toldSecret) {
			continue
		}
		var told strings.Builder
		quoted, _ := json.Marshal(value)
		ascii := strconv.QuoteToASCII(value)
		for _, text := range []string{value, string(quoted), ascii, strings.ReplaceAll(string(quoted), "/", `\/`), url.QueryEscape(value), url.PathEscape(value),
			smallPercents.Replace(url.QueryEscape(value)), strings.ReplaceAll(url.QueryEscape(value), "+", "%20"), html.EscapeString(value), fmt.Sprintf("%q", value),
			"'" + strings.ReplaceAll(value, "'", `'\''`) + "'", base64.StdEncoding.EncodeToString([]byte(kv)), base64.URLEncoding.EncodeToString([]byte("x" + value)),
			hex.EncodeToString([]byte(value)), fmt.Sprintf("%X", kv)} {
			fmt.Fprintf(&told, "%s is %s\n", name, text)
		}
		fmt.Print(told.String())
		fmt.Fprint(os.Stderr, told.String())
		for _, args := range [][]string{{"publish", "facts", told.String()}, {"send", "@" + os.Args[1], told.String()}} {
			if out, err := exec.Command("swarm", args...).CombinedOutput(); err != nil {
				fmt.Printf("%s: %v: %s\n", args[0], err, out)
				os.Exit(1)
			}
		}
	}
}

var smallPercents = strings.NewReplacer("%2B", "%2b", "%2F", "%2f", "%3A", "%3a", "%3D", "%3d", "%C3", "%c3", "%A9", "%a9", "%BC", "%bc", "%3B", "%3b", "%3F", "%3f")

// leaks succeeds if one of these secrets is in a file below the named ones: leaks file... Scripts
// negate it.
func leaks(ts *testscript.TestScript, neg bool, args []string) {
	found := 0
	needles := [][]byte{[]byte(toldSecret), []byte(strings.ToLower(toldSecret)), []byte(hex.EncodeToString([]byte(toldSecret))), []byte(fmt.Sprintf("%X", toldSecret))}
	for before := range 3 {
		digits := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), toldSecret...))
		needles = append(needles, []byte(digits[2:len(digits)-2]))
	}
	for _, arg := range args {
		ts.Check(filepath.WalkDir(ts.MkAbs(arg), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			for _, needle := range needles {
				if at := bytes.Index(data, needle); at >= 0 {
					found++
					ts.Logf("%s: %q", path, data[max(0, at-60):min(len(data), at+60)])
				}
			}
			return err
		}))
	}
	if found > 0 == neg {
		ts.Fatalf("%d leaks", found)
	}
}
