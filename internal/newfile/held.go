package newfile

import (
	"io"
	"os"
)

// heldBytes are kept in memory of what WriteWhole holds back.
const heldBytes = 8 << 20

// WriteWhole is Write where a stream, too, gets all or nothing: what write gives is held back until it has returned
// without an error, beyond 8 MB in a temporary file that only the owner may read.
func WriteWhole(w io.Writer, flag, path string, write func(io.Writer) error) error {
	if path != "" && path != "-" {
		if st, err := os.Stat(path); err != nil || st.Mode().IsRegular() {
			return Write(w, flag, path, write) // a file appears as a whole
		}
	}
	h := &held{}
	defer h.close()
	if err := buffered(h, write); err != nil {
		return err
	}
	return Write(w, flag, path, h.copy)
}

// held are bytes that wait.
type held struct {
	head []byte
	rest *os.File // what follows; nil: nothing does
}

func (h *held) Write(b []byte) (int, error) {
	if h.rest == nil && len(h.head)+len(b) <= heldBytes {
		h.head = append(h.head, b...)
		return len(b), nil
	}
	if h.rest == nil {
		var err error
		if h.rest, err = os.CreateTemp("", "sotto-*"); err != nil {
			return 0, err
		}
		os.Remove(h.rest.Name()) // where a system removes no open file, close does
	}
	return h.rest.Write(b)
}

func (h *held) copy(w io.Writer) error {
	if _, err := w.Write(h.head); err != nil || h.rest == nil {
		return err
	}
	if _, err := h.rest.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(w, h.rest)
	return err
}

func (h *held) close() {
	if h.rest != nil {
		h.rest.Close()
		os.Remove(h.rest.Name())
	}
}
