package httpd

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"swarm"
	"swarm/internal/strictjson"
)

// A browser gets in without the token. The address that a person opens has a one-time code behind
// its #, which browsers send to nobody. The page exchanges the code for a cookie. So the token
// never stands in an address, a history or a script.
//
// The cookie counts as the token in requests of the page itself only, and on paths for people only:
// see [Server.session].
const (
	loginPath = "/api/v1/login"
	codesPath = "/api/v1/codes"

	codeTime    = time.Minute
	maxCodes    = 32      // open ones; a new one replaces the oldest
	maxBrowsers = 64      // logged-in browsers; a new one replaces the oldest
	maxLogin    = 4 << 10 // bytes of a login
	maxWrong    = 60      // wrong codes in a minute that are told so
)

// A digest stands for a secret: of codes and cookies the server keeps no more.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// A code is a one-time code that nobody has used so far.
type code struct {
	digest
	until time.Time
}

// A door holds the one-time codes and the sessions of browsers. It lives as long as the server, so a
// restart ends all sessions. mu guards the fields below it.
type door struct {
	now func() time.Time

	mu       sync.Mutex
	codes    []code   // the oldest first
	sessions []digest // the oldest first
	wrong    int      // codes since
	since    time.Time
}

// invite makes a one-time code.
func (d *door) invite() string {
	secret := rand.Text() // 130 bits
	d.mu.Lock()
	defer d.mu.Unlock()
	d.codes = append(d.codes, code{digestOf(secret), d.now().Add(codeTime)})
	d.codes = d.codes[max(0, len(d.codes)-maxCodes):]
	return secret
}

// exchange uses a code up, and returns the secret of a new session. Of two clients with the same code
// one gets in. often says that too many wrong codes came in the last minute. It never holds back a
// right one, so that nobody can lock a person out by guessing.
func (d *door) exchange(shown string) (secret string, ok, often bool) {
	sum := digestOf(shown)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	d.codes = slices.DeleteFunc(d.codes, func(c code) bool { return !now.Before(c.until) })
	i := slices.IndexFunc(d.codes, func(c code) bool { return c.digest == sum })
	if i < 0 {
		if now.Sub(d.since) >= time.Minute {
			d.since, d.wrong = now, 0
		}
		d.wrong++
		return "", false, d.wrong > maxWrong
	}
	d.codes = slices.Delete(d.codes, i, i+1)
	secret = rand.Text()
	d.sessions = append(d.sessions, digestOf(secret))
	d.sessions = d.sessions[max(0, len(d.sessions)-maxBrowsers):]
	return secret, true, false
}

// knows reports whether a secret is that of a session.
func (d *door) knows(secret string) bool {
	sum := digestOf(secret)
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.sessions, sum)
}

// OpenURL returns the address of the page at a path such as /r/RUN, with a one-time code for the
// browser of a person. The code is good once, for a minute.
func (s *Server) OpenURL(path string) string {
	return s.url + path + "#code=" + s.door.invite()
}

// cookieName has the port, because browsers give a cookie to all servers of a host, whatever their
// port: two servers of this machine would overwrite each other's.
func (s *Server) cookieName() string { return "swarm_session_" + s.port }

// forBrowsers reports whether a cookie counts on a path. Agents' tools and other people's agents are
// for programs, and so are new codes. A path that routing would change counts as none of ours.
func forBrowsers(p string) bool {
	return path.Clean(p) == p && p != codesPath && (strings.HasPrefix(p, "/api/v1/") || p == "/openapi.json")
}

// session finds the session of a request by its cookie. Browsers attach cookies to requests of any
// page, so the cookie counts only if the browser says that our own page sent the request. A page
// cannot set these two headers itself.
//
// Another server of this host can make a browser send several cookies of the same name, of which one
// is ours.
func (s *Server) session(r *http.Request) (caller, bool) {
	fromUs := len(r.Header.Values("Origin")) == 1 // the guard has compared it
	if site := r.Header.Values("Sec-Fetch-Site"); len(site) > 0 {
		fromUs = len(site) == 1 && site[0] == "same-origin"
	}
	if s.page == nil || !fromUs || !forBrowsers(r.URL.Path) || len(r.Header.Values("Authorization")) > 0 {
		return caller{}, false
	}
	for _, c := range r.CookiesNamed(s.cookieName()) {
		if s.door.knows(c.Value) {
			return caller{token: "cookie " + c.Value, browser: true}, true
		}
	}
	return caller{}, false
}

// login exchanges a code for a cookie. The guard has checked Host and Origin.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Connection", "close") // a stranger keeps no connection
	if site := r.Header.Values("Sec-Fetch-Site"); len(site) > 0 && (len(site) > 1 || site[0] != "same-origin") {
		err := swarm.Errorf(swarm.Denied, "only the page of this server can log in").WithHint("open the address that was printed: %s", s.url)
		Refuse(w, http.StatusForbidden, err)
		return
	}
	if err := connOf(r).check(s.options.CheckBrowser); err != nil {
		Refuse(w, http.StatusForbidden, err)
		return
	}
	if err := checkJSON(r); err != nil {
		Refuse(w, http.StatusUnsupportedMediaType, err)
		return
	}
	body, status, err := s.readBody(w, r, maxLogin)
	if err != nil {
		Refuse(w, status, err)
		return
	}
	var said struct {
		Code string `json:"code"`
	}
	if err := strictjson.ReadObject("the body", body, maxLogin, "code").Into(&said); err != nil {
		Refuse(w, http.StatusBadRequest, err)
		return
	}
	secret, ok, often := s.door.exchange(said.Code)
	switch {
	case often:
		w.Header().Set("Retry-After", "60")
		err := swarm.Errorf(swarm.NotSignedIn, "too many wrong codes").WithHint("wait a minute; a right code is taken at once")
		Refuse(w, http.StatusTooManyRequests, err)
		return
	case !ok:
		w.Header().Set("WWW-Authenticate", challenge)
		Refuse(w, http.StatusUnauthorized, s.errNoSession("the code is wrong, older than a minute, or was used already"))
		return
	}
	http.SetCookie(w, &http.Cookie{Name: s.cookieName(), Value: secret, Path: "/", HttpOnly: true, Secure: s.options.TLS != nil, SameSite: http.SameSiteStrictMode})
	w.WriteHeader(http.StatusNoContent)
}

// errNoSession tells the page, and so its reader, how to get in again.
func (s *Server) errNoSession(what string) error {
	hint := "press Enter in the terminal of swarm serve for a new address, or POST " + codesPath + " with the token"
	if s.options.Again != "" {
		hint = s.options.Again
	}
	return swarm.Errorf(swarm.NotSignedIn, "%s", what).WithHint("%s", hint)
}

// giveCode answers a program that has the token with an address for a browser.
func (s *Server) giveCode(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body) // the guard has read it
	if err == nil && len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	var said struct {
		Path string `json:"path"`
	}
	if err == nil {
		err = strictjson.ReadObject("the body", body, maxLogin, "path").Into(&said)
	}
	if said.Path == "" {
		said.Path = "/"
	}
	if err == nil && (!isPagePath(said.Path) || strings.HasPrefix(said.Path, assetPath) || strings.ContainsAny(said.Path, "#\\ ") ||
		strings.ContainsFunc(said.Path, func(c rune) bool { return c < ' ' || c > '~' })) {
		err = swarm.Errorf(swarm.BadInput, "%s is no path of the page", swarm.Quote(said.Path)).WithHint(`write "/" or "/r/RUN"`)
	}
	if err != nil {
		Refuse(w, http.StatusBadRequest, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusCreated)
	_, _ = w.Write(append(swarm.Encode(struct {
		URL string `json:"url"`
	}{s.OpenURL(said.Path)}), '\n'))
}
