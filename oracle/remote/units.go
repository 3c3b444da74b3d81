package remote

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
)

const (
	idSize    = 16             // bytes of an id's hash
	pageUnits = 1 << 15        // of a page, 512 KiB
	tooMany   = math.MaxUint32 // in place of the number of a page's hashes
)

// unitsOf is how many units a shard may have, and as how many it seems to have on the wire. It follows from public
// numbers: the nominal number of all units, and that of the shards.
func unitsOf(units, shards int) int {
	return min(2*units+64, max(4096, 8*((units+shards-1)/shards)))
}

func pagesOf(most int) int { return (most + pageUnits - 1) / pageUnits }

// pageSize is the number of hashes of a page, padding included.
func pageSize(most, page int) int { return min(pageUnits, most-page*pageUnits) }

// appendPage writes a page of the ids' hashes: their number, and as many as a page has room for. Zeros stand for those
// that are not there.
func appendPage(dst []byte, ids [][idSize]byte, most, page int) ([]byte, error) {
	if page < 0 || page >= pagesOf(most) {
		return nil, errQuestion
	}
	size := pageSize(most, page)
	mine := ids[min(page*pageUnits, len(ids)):min(page*pageUnits+size, len(ids))]
	n := uint32(len(mine))
	if len(ids) > most {
		n = tooMany
	}
	dst = binary.LittleEndian.AppendUint32(slices.Grow(dst, 4+size*idSize), n)
	for _, id := range mine {
		dst = append(dst, id[:]...)
	}
	return append(dst, make([]byte, (size-len(mine))*idSize)...), nil
}

// joined returns the ids of all shards, ascending, and the first two shards that have one in common: of numbers 0, 0 if
// none have.
func joined(shards [][]byte) (ids [][idSize]byte, first, second int) {
	type unit struct {
		id    [idSize]byte
		shard int32
	}
	n := 0
	for _, b := range shards {
		n += len(b) / idSize
	}
	all := make([]unit, 0, n)
	for i, b := range shards {
		for ; len(b) > 0; b = b[idSize:] {
			all = append(all, unit{[idSize]byte(b), int32(i)})
		}
	}
	slices.SortFunc(all, func(a, b unit) int {
		if c := bytes.Compare(a.id[:], b.id[:]); c != 0 {
			return c
		}
		return int(a.shard - b.shard)
	})
	ids = make([][idSize]byte, len(all))
	for i, u := range all {
		ids[i] = u.id
		if i > 0 && all[i-1].id == u.id &&
			(second == 0 || int(u.shard) < second || int(u.shard) == second && int(all[i-1].shard) < first) {
			first, second = int(all[i-1].shard), int(u.shard)
		}
	}
	return ids, first, second
}
