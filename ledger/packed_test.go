package ledger

import (
	"encoding/json"
	"testing"

	"github.com/sottodp/sotto/privacy"
)

// A compressed event reads as it was written; one that is cut, or that more follows, is none.
func TestPackedWhole(t *testing.T) {
	var all privacy.Composed
	for i := range 3000 {
		all = append(all, privacy.Repeated{Count: 1, Of: privacy.Gaussian{Sigma: 1 + float64(i)/7}})
	}
	plain, err := privacy.MarshalEvent(all)
	if err != nil {
		t.Fatal(err)
	}
	p, err := pack(plain)
	if err != nil || p[0] != '"' {
		t.Fatalf("%.20s, %v", p, err)
	}
	if e, err := eventIn(p); err != nil || !privacy.Equal(e, all) {
		t.Error(err)
	}
	if same, err := (&Settlement{Charged: p}).Shows(all); err != nil || !same {
		t.Errorf("%v, %v", same, err)
	}
	text := string(p[:len(p)-1])
	for _, bad := range []string{text[:len(text)-8], `"deflate `, text + "AAAA", text + text[len(`"deflate `):]} {
		held := json.RawMessage(bad + `"`)
		if _, err := eventIn(held); err == nil {
			t.Errorf("%d bytes read where %d were written", len(held), len(p))
		}
		if same, _ := (&Settlement{Charged: held}).Shows(all); same {
			t.Errorf("%d bytes show what %d were written for", len(held), len(p))
		}
	}
}
