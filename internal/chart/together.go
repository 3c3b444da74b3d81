package chart

import (
	"bytes"
	"regexp"
)

// sign finds what no line may break: ε, δ or μ with its figure, and a figure with its percent sign. Tags, styles, code
// and other text that a reader copies come first, so that they stay as they are.
var sign = regexp.MustCompile(
	`(?s)<style.*?</style>|<pre.*?</pre>|<code.*?</code>|<[^>]*>|[εδμ] [=≤≥] |[εδ] [0-9]|[0-9] %`)

// Together keeps each figure of a page on one line with its sign. All pages pass through it when they are made.
func Together(html []byte) []byte {
	return sign.ReplaceAllFunc(html, func(b []byte) []byte {
		if b[0] == '<' {
			return b
		}
		return bytes.ReplaceAll(b, []byte(" "), []byte("&nbsp;"))
	})
}
