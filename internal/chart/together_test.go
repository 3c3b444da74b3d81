package chart

import "testing"

// TestTogether: no line breaks between a sign and its figure; what a reader copies, and tags, keep their spaces.
func TestTogether(t *testing.T) {
	for in, want := range map[string]string{
		`with ε = 1 and δ = 0.00001, at most 55.4 % of it`:             `with ε&nbsp;=&nbsp;1 and δ&nbsp;=&nbsp;0.00001, at most 55.4&nbsp;% of it`,
		`<b>ε 0.5</b>, <b>μ = 0.2</b>, <td>0.1 %</td>`:                 `<b>ε&nbsp;0.5</b>, <b>μ&nbsp;=&nbsp;0.2</b>, <td>0.1&nbsp;%</td>`,
		`by ε and δ alone, ε for each δ`:                               `by ε and δ alone, ε for each δ`,
		`<i title="ε = 1"></i><code>ε = 1</code><pre>ε = 1, 5 %</pre>`: `<i title="ε = 1"></i><code>ε = 1</code><pre>ε = 1, 5 %</pre>`,
		`<style>a { width: 5 %; }</style>ε = <b>1</b>`:                 `<style>a { width: 5 %; }</style>ε&nbsp;=&nbsp;<b>1</b>`,
	} {
		if got := string(Together([]byte(in))); got != want {
			t.Errorf("%s\nbecomes %s\nwant    %s", in, got, want)
		}
	}
}
