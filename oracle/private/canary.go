package private

import "slices"

// divide takes the canaries out of the sample: they are numbered behind the table's units.
func (o *Oracle) divide() {
	c, b := o.cfg.Canaries, &o.batch
	if c == nil {
		return
	}
	o.canaries = o.canaries[:0]
	units := o.units - c.Len()
	if b.all {
		for i := range c.Len() {
			o.canaries = append(o.canaries, i)
		}
		return
	}
	first, _ := slices.BinarySearch(b.rows, int32(units))
	for _, unit := range b.rows[first:] {
		o.canaries = append(o.canaries, int(unit)-units)
	}
	b.rows = b.rows[:first]
}
