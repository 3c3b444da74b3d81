//go:build !unix

package data

// mapFile reads the file at path: on these systems a packed table needs memory for its rows.
func mapFile(path string) (p *pages, unmap func() error, err error) {
	f, err := Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	return readAligned(path, f)
}

// advise: the table is in memory.
func advise([]byte, reading) {}
