// Package redact hides passwords in what Sotto shows: what a URL has between its slashes and its @, and the values of
// keys like password. Every message with a path or a URL passes through it.
package redact

import (
	"net/url"
	"regexp"
	"strings"
)

const hidden = "…"

var (
	// begins finds what may be a URL, also one with too few slashes.
	begins = regexp.MustCompile("(?:^|[\\s\"'`(<\\[{=,;])((?:[A-Za-z][A-Za-z0-9+.-]*:)+[/\\\\]*|//)[^\\s/]")
	// hosts match what stands before the path of a URL without a user.
	hosts      = regexp.MustCompile(`^(?:(?:\[[0-9A-Fa-f:.%]*\]|[^:@\[\]]*)(?::(?:[0-9]*|port|PORT))?(?:,|$))+$`)
	phraseEnds = regexp.MustCompile("[:;,\"'`)]\\s")
	// pairs are KEY=VALUE, of a query or a connection string of libpq.
	pairs  = regexp.MustCompile(`([A-Za-z][\w.%-]*)(\s*=\s*)(…|"[^"]*"|'(?:[^'\\]|\\.)*'|[^\s&;]+)`)
	inPath = regexp.MustCompile(`([A-Za-z][\w.%-]*)(=)([^&]+)`) // of a query
	// secret are the keys whose values are hidden, as drivers and stores of objects spell them.
	secret = regexp.MustCompile(`(?i)passw|passphrase|pwd|secret|token|credential|signature|^pass$|^sig$|(?:api|access|account)[_-]?key`)
)

// Text returns a message without passwords. It may hide more than a password.
func Text(s string) string {
	at := begins.FindAllStringSubmatchIndex(s, -1)
	var b strings.Builder
	done := 0
	for i, m := range at {
		end := len(s)
		if i+1 < len(at) {
			end = at[i+1][2]
		}
		if line := strings.IndexByte(s[m[3]:end], '\n'); line >= 0 {
			end = m[3] + line
		}
		rest := s[m[3]:end]
		if phrase := phraseEnds.FindStringIndex(rest); phrase != nil {
			rest = rest[:phrase[0]]
		}
		word, _, _ := strings.Cut(rest, " ")
		token := strings.TrimRight(word, "\"'`.,:;)>]}")
		done = hide(&b, s, done, m[2:4], token, rest)
	}
	b.WriteString(s[done:])
	return hidePairs(pairs, b.String())
}

// Path returns one path or URL, or several with " + " between them, without passwords. These may have spaces.
func Path(s string) string {
	var b strings.Builder
	done := 0
	for _, m := range begins.FindAllStringSubmatchIndex(s, -1) {
		if before := strings.TrimRight(s[:m[2]], " "); m[2] >= done && (before == "" || strings.HasSuffix(before, " +")) {
			done = hide(&b, s, done, m[2:4], s[m[3]:], s[m[3]:])
		}
	}
	b.WriteString(s[done:])
	s = b.String()
	if where, query, ok := strings.Cut(s, "?"); ok {
		return where + "?" + hidePairs(inPath, query)
	}
	return hidePairs(pairs, s)
}

// hide writes s from done on without the user and password of the URL whose scheme is at the place given, and returns
// where the rest begins. Token is its next word, and rest the phrase, since a password may have spaces.
func hide(b *strings.Builder, s string, done int, scheme []int, token, rest string) int {
	begin, at := scheme[1], strings.LastIndexByte(token, '@')
	name := strings.TrimRight(s[scheme[0]:begin], `/\`)
	switch slashes := begin - scheme[0] - len(name); {
	case slashes == 0: // a:b:PASSWORD@host
		if at < 0 {
			return done
		}
		at += begin
		begin = scheme[0] + strings.IndexByte(name, ':') + 1
	case len(name) == 2: // a drive of Windows
		return done
	default:
		authority := token
		if end := strings.IndexAny(token, `/?#\`); end >= 0 {
			authority = token[:end]
		}
		user := token[:max(at, 0)]
		switch {
		case user == "user" || user == "user:password": // an example of ours
			return done
		case at >= 0 && strings.ContainsAny(authority, ":@"), !hosts.MatchString(authority):
			if at = strings.LastIndexByte(rest, '@'); at < 0 {
				at = len(authority)
			}
			at += begin
		default:
			return done
		}
	}
	b.WriteString(s[done:begin] + hidden)
	return at
}

// hidePairs hides the values of secret keys.
func hidePairs(pairs *regexp.Regexp, s string) string {
	var b strings.Builder
	for {
		m := pairs.FindStringSubmatchIndex(s)
		if m == nil {
			return b.String() + s
		}
		end := m[5] // a value may hold further pairs
		b.WriteString(s[:end])
		if key, err := url.QueryUnescape(s[m[2]:m[3]]); err != nil || secret.MatchString(key) {
			b.WriteString(hidden)
			end = m[7]
		}
		s = s[end:]
	}
}
