package data

import "context"

// testGate admits every table and keeps what it was told.
type testGate struct {
	key     *RowKey
	content Content
}

func (g *testGate) RowKey() *RowKey { return g.key }

func (g *testGate) Admit(_ context.Context, c *Content) error {
	g.content = *c
	return nil
}

var testKey = &RowKey{Secret: []byte("key")}

// admit is a gate that wants no hashes of rows.
func admit() *testGate { return &testGate{} }

// digestTo is admit, and puts the digest into d.
func digestTo(d *[32]byte) Gate { return digestGate{d} }

type digestGate struct{ to *[32]byte }

func (digestGate) RowKey() *RowKey { return nil }

func (g digestGate) Admit(_ context.Context, c *Content) error {
	*g.to = c.Digest
	return nil
}
