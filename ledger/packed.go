package ledger

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/sottodp/sotto/privacy"
)

// An entry holds the charged events of a run, and in a filter's ledger its plan, as JSON. A long JSON is
// stored as a JSON string: compressed by DEFLATE (RFC 1951), in base64 after the word "deflate". A run
// with a different event in every batch can have tens of megabytes, which each reader of the ledger would
// hold several times.

const (
	mostPlain  = 64 << 10  // bytes of an event that an entry holds as JSON
	mostEvents = 512 << 20 // bytes of an event that a reader accepts
	deflated   = "deflate "
)

// pack is the form in which an entry holds an event whose JSON is plain.
func pack(plain []byte) (json.RawMessage, error) {
	if len(plain) <= mostPlain {
		return plain, nil
	}
	var b bytes.Buffer
	b.WriteString(`"` + deflated)
	text := base64.NewEncoder(base64.StdEncoding, &b)
	packed, err := flate.NewWriter(text, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	packed.Write(plain) // neither fails: they end in a buffer
	if err := errors.Join(packed.Close(), text.Close()); err != nil {
		return nil, err
	}
	b.WriteByte('"')
	return b.Bytes(), nil
}

// unpacked reads an event in either form, as JSON.
func unpacked(held json.RawMessage) (io.Reader, error) {
	if len(held) == 0 || held[0] != '"' {
		return bytes.NewReader(held), nil
	}
	var s string
	if err := json.Unmarshal(held, &s); err != nil {
		return nil, err
	}
	text, ok := strings.CutPrefix(s, deflated)
	if !ok {
		return nil, fmt.Errorf("event: found a text in a form that this version does not know: %w", errNewer)
	}
	packed := bufio.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(text)))
	return &whole{flate.NewReader(packed), packed}, nil
}

// whole reads packed text and refuses bytes after it: an entry has no unread bytes.
type whole struct {
	text   io.Reader
	packed *bufio.Reader
}

func (w *whole) Read(b []byte) (int, error) {
	n, err := w.text.Read(b)
	if err == io.EOF {
		if _, more := w.packed.ReadByte(); more != io.EOF {
			err = errors.New("event: more follows the compressed text")
		}
	}
	return n, err
}

// eventIn returns the event that an entry holds in either form.
func eventIn(held json.RawMessage) (privacy.Event, error) {
	r, err := unpacked(held)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, mostEvents+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("event: %w", err)
	case len(text) > mostEvents:
		return nil, fmt.Errorf("event: found more than %d bytes", mostEvents)
	}
	return privacy.UnmarshalEvent(text)
}

// Shows reports whether the settlement holds e as charged, byte for byte in the canonical form.
func (s *Settlement) Shows(e privacy.Event) (bool, error) {
	if s == nil {
		return false, nil
	}
	r, err := unpacked(s.Charged)
	if err != nil {
		return false, err
	}
	c := compared{want: r}
	if err := privacy.WriteEvent(&c, e); err != nil {
		return false, err
	}
	return c.same(), nil
}

// compared compares what is written to it with what it wants, and keeps no copy.
type compared struct {
	want    io.Reader
	buf     [4096]byte
	differs bool
}

func (c *compared) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0 && !c.differs; {
		n, err := io.ReadFull(c.want, c.buf[:min(len(rest), len(c.buf))])
		c.differs = err != nil || !bytes.Equal(c.buf[:n], rest[:n])
		rest = rest[n:]
	}
	return len(b), nil
}

// same reports whether all that was wanted was written, and nothing else.
func (c *compared) same() bool {
	n, err := io.ReadFull(c.want, c.buf[:1])
	return !c.differs && n == 0 && err == io.EOF
}
