package live

import "slices"

// divide takes the canaries out of the sample: they are numbered behind the table's rows.
func (o *Oracle) divide() {
	c, b := o.cfg.Canaries, &o.batch
	if c == nil {
		return
	}
	o.canaries = o.canaries[:0]
	rows := o.rows - c.Len()
	if b.all {
		for i := range c.Len() {
			o.canaries = append(o.canaries, i)
		}
		return
	}
	first, _ := slices.BinarySearch(b.rows, int32(rows))
	for _, row := range b.rows[first:] {
		o.canaries = append(o.canaries, int(row)-rows)
	}
	b.rows = b.rows[:first]
}
