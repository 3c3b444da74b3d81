package data

import (
	"strings"
	"time"

	"github.com/sottodp/sotto/schema"
)

// appendMeaning appends the words of a cell that is no number and has no spaces around it, by what it means: a
// truth value is the number that a database keeps for it, a day or a time has the form of ISO 8601, in UTC, and
// the usual marks of a missing value are an empty cell. So the rows of a table have the same hashes in a CSV file
// that says False, 2021-11-25 00:00:00 and NA, and in a Parquet file that has types and nulls. Whether the schema
// reads the column so does not matter; more rows are equal than by their text, and none fewer (ADR 100).
func appendMeaning(words []uint64, cell string) []uint64 {
	if isMissing(cell) {
		return appendWords(words, "")
	}
	if strings.IndexByte("tTfFyYnN", cell[0]) >= 0 {
		if v, ok := schema.Truth(cell); ok {
			return append(words, numberWord(v))
		}
	}
	var room [40]byte
	if day, ok := appendDay(room[:0], cell); ok {
		return appendWords(words, view(day))
	}
	return appendWords(words, cell)
}

// isMissing says whether a cell is one of the marks of a missing value that programs write, in any case.
func isMissing(cell string) bool {
	if len(cell) > len("missing") || cell != "" && strings.IndexByte(`nN#<\mM?-.`, cell[0]) < 0 {
		return false
	}
	switch strings.ToLower(cell) {
	case "", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null", `\n`, "none", "nil", "missing", "?", "-", "--", ".":
		return true
	}
	return false
}

// appendDay appends a day, or a time that is not midnight, in the form of ISO 8601 and in UTC, if the cell is one.
// A time without a zone counts as UTC. Days may be written 2021-11-25, 2021/11/25 and 25.11.2021.
func appendDay(dst []byte, cell string) ([]byte, bool) {
	if len(cell) < 10 {
		return nil, false
	}
	read := number2(cell)
	var year, month, day int
	switch first, second := cell[4], cell[7]; {
	case first == second && (first == '-' || first == '/'):
		year, month, day = 100*read(0)+read(2), read(5), read(8)
	case cell[2] == '.' && cell[5] == '.':
		year, month, day = 100*read(6)+read(8), read(3), read(0)
	default:
		return nil, false
	}
	if year < 0 || month < 1 || month > 12 || day < 1 || day > 31 {
		return nil, false
	}
	since, fraction, ok := clockOf(cell[10:])
	if !ok {
		return nil, false
	}
	if since < 0 || since >= 24*time.Hour || day > 28 { // another day in UTC, or none of its month
		t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
		if t.Day() != day {
			return nil, false
		}
		t = t.Add(since)
		since = clock(t.Hour(), t.Minute()) + time.Duration(t.Second())*time.Second
		year, month, day = t.Year(), int(t.Month()), t.Day()
	}
	dst = appendTwo(appendTwo(dst, year/100), year%100)
	dst = appendTwo(append(appendTwo(append(dst, '-'), month), '-'), day)
	if fraction = strings.TrimRight(fraction, "0"); since > 0 || fraction != "" {
		seconds := int(since / time.Second)
		dst = appendTwo(append(dst, 'T'), seconds/3600)
		dst = appendTwo(append(dst, ':'), seconds/60%60)
		dst = appendTwo(append(dst, ':'), seconds%60)
		if fraction != "" {
			dst = append(append(dst, '.'), fraction[:min(len(fraction), 12)]...)
		}
	}
	return dst, true
}

// appendTwo appends a number of two digits.
func appendTwo(dst []byte, n int) []byte { return append(dst, byte('0'+n/10), byte('0'+n%10)) }

// number2 reads two digits of a text at a position; at least −100·100 where there are others.
func number2(text string) func(at int) int {
	return func(at int) int {
		if at+2 > len(text) || text[at]-'0' > 9 || text[at+1]-'0' > 9 {
			return -10_000
		}
		return 10*int(text[at]-'0') + int(text[at+1]-'0')
	}
}

// clockOf reads what follows a day: nothing, or T15:04, T15:04:05.678 and the same after a space, and a zone. It
// returns the time since midnight in UTC, and the digits of a second's fraction.
func clockOf(rest string) (since time.Duration, fraction string, ok bool) {
	if rest == "" {
		return 0, "", true
	}
	read := number2(rest)
	hour, minute, second := read(1), read(4), 0
	if len(rest) < 6 || rest[3] != ':' || rest[0] != 'T' && rest[0] != 't' && rest[0] != ' ' {
		return 0, "", false
	}
	if rest = rest[6:]; rest != "" && rest[0] == ':' {
		second = number2(rest)(1)
		if rest = rest[min(3, len(rest)):]; rest != "" && (rest[0] == '.' || rest[0] == ',') {
			zone := strings.TrimLeft(rest[1:], "0123456789")
			if fraction, rest = rest[1:len(rest)-len(zone)], zone; fraction == "" {
				return 0, "", false
			}
		}
	}
	offset, ok := zoneOf(strings.TrimPrefix(rest, " "))
	if !ok || !upTo(hour, 23) || !upTo(minute, 59) || !upTo(second, 60) {
		return 0, "", false
	}
	return clock(hour, minute) + time.Duration(second)*time.Second - offset, fraction, true
}

// zoneOf reads a zone: none, Z, UTC, or an offset as +01:00, +0100 or +01.
func zoneOf(zone string) (offset time.Duration, ok bool) {
	switch zone {
	case "", "Z", "z", "UTC":
		return 0, true
	}
	digits := strings.Replace(zone[1:], ":", "", 1)
	if len(digits) == 2 {
		digits += "00"
	}
	read := number2(digits)
	hours, minutes := read(0), read(2)
	if len(digits) != 4 || !upTo(hours, 23) || !upTo(minutes, 59) {
		return 0, false
	}
	offset = clock(hours, minutes)
	if zone[0] == '-' {
		offset = -offset
	}
	return offset, zone[0] == '+' || zone[0] == '-'
}

func upTo(v, most int) bool { return v >= 0 && v <= most }

func clock(hours, minutes int) time.Duration {
	return time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute
}
