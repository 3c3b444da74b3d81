package paper

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/sottodp/sotto/internal/readfile"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/runlog"
)

// keptFile has what it takes to continue an experiment: what it is, its datasets, and the results of its jobs as they
// come.
const keptFile = "runs.jsonl"

// What must be the same to continue an experiment.
type identity struct {
	Paper    string `json:"paper"`
	Settings string `json:"settings"`
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Program  string `json:"program,omitempty"` // SHA-256 of a program that no commit describes
	Platform string `json:"platform"`
	Kernels  string `json:"kernels"`
}

// A line of the file has one of Identity, File, Piece and Result. Wall and Processor are of the piece so far.
type line struct {
	Identity  *identity `json:"experiment,omitempty"`
	File      string    `json:"file,omitempty"`
	SHA256    string    `json:"sha256,omitempty"`
	Piece     *Piece    `json:"piece,omitempty"`
	Job       string    `json:"job,omitempty"`
	Result    []byte    `json:"result,omitempty"` // in gob, which has NaN and ±Inf
	Wall      float64   `json:"wall,omitempty"`
	Processor float64   `json:"processor,omitempty"`
	Load      string    `json:"load,omitempty"` // at the end of the piece
}

// A keeper writes the file. A nil keeper keeps nothing.
type keeper struct {
	dir, data string
	judge     bool // see Lab
	id        identity
	began     time.Time
	processor float64
	was       *identity // of the experiment that is continued; nil for a new one
	pieces    []Piece   // the last is this one
	files     map[string]string
	results   map[string][]byte

	mu      sync.Mutex
	calls   int    // of Each
	whole   int64  // bytes of whole lines of earlier pieces
	pending []line // before the file is made
	file    *os.File
	unlock  func()
}

type keeperKey struct{}

// keep begins a piece of an experiment; it continues the one in l.Dir. It changes nothing on disk.
func keep(e Experiment, l *Lab) (*keeper, error) {
	b := runlog.ThisBuild()
	k := &keeper{dir: l.Dir, data: l.Data, judge: l.Judge, began: time.Now(), processor: Processor(),
		files: map[string]string{}, results: map[string][]byte{},
		id: identity{Paper: e.Name, Version: l.Version, Commit: b.Commit, Platform: b.Platform, Kernels: b.Kernels}}
	if b.Commit == "" || b.Modified {
		if name, err := os.Executable(); err == nil {
			if k.id.Program, err = checksum(name); err != nil {
				return nil, err
			}
		}
	}
	this := newPiece(k.began)
	k.pieces = []Piece{this}
	k.pending = []line{{Identity: &k.id}, {Piece: &this}}
	path := filepath.Join(l.Dir, keptFile)
	text, err := readfile.All(path, 1<<32)
	if os.IsNotExist(err) && !k.judge {
		if entries, err := os.ReadDir(l.Dir); err == nil && len(entries) > 0 {
			return nil, fail("%s exists and is not empty; give a new or an empty directory, or one with an experiment to continue", l.Dir)
		}
		return k, nil
	}
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	if k.whole = int64(bytes.LastIndexByte(text, '\n') + 1); k.whole == 0 {
		if k.judge {
			return nil, fail("%s holds no experiment to judge; give the directory of one", l.Dir)
		}
		return k, nil
	}
	k.pieces, k.pending = nil, k.pending[1:]
	for i, raw := range bytes.Split(bytes.TrimSuffix(text[:k.whole], []byte("\n")), []byte("\n")) {
		var one line
		if err := json.Unmarshal(raw, &one); err != nil || (i == 0) != (one.Identity != nil) ||
			len(k.pieces) == 0 && one.Wall > 0 {
			return nil, fail("%s:%d: found a line that is none of an experiment; use the file as Sotto wrote it, or a new directory", path, i+1)
		}
		switch {
		case one.Identity != nil:
			k.was = one.Identity
		case one.File != "":
			k.files[one.File] = one.SHA256
		case one.Piece != nil:
			k.pieces = append(k.pieces, *one.Piece)
		}
		if one.Job != "" {
			k.results[one.Job] = one.Result
		}
		if one.Wall > 0 {
			k.pieces[len(k.pieces)-1].until(one)
		}
	}
	if k.judge { // a piece runs jobs, and none is
		k.pending = nil
		return k, nil
	}
	k.pieces = append(k.pieces, this)
	return k, nil
}

func fail(format string, args ...any) error {
	return &run.InputError{Where: "--out", Err: fmt.Errorf(format, args...)}
}

// same refuses to continue another experiment, and says what differs.
func (k *keeper) same() error {
	if k == nil || k.was == nil {
		return nil
	}
	was := *k.was
	if k.judge {
		was.Version, was.Commit, was.Program = k.id.Version, k.id.Commit, k.id.Program
	}
	if was == k.id {
		return nil
	}
	var what []string
	a, b := reflect.ValueOf(was), reflect.ValueOf(k.id)
	for i := range a.NumField() {
		if a.Field(i).String() != b.Field(i).String() {
			what = append(what,
				fmt.Sprintf("%s is %q there and %q here", strings.ToLower(a.Type().Field(i).Name), a.Field(i), b.Field(i)))
		}
	}
	return fail("%s holds another experiment: %s; give the same, or a new directory", k.dir, strings.Join(what, ", "))
}

// checksum is the SHA-256 of a file.
func checksum(name string) (string, error) {
	f, err := readfile.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// reads records the checksum of a dataset's file.
func (k *keeper) reads(name string) error {
	if k == nil {
		return nil
	}
	sum, err := checksum(name)
	if err != nil {
		return err
	}
	if rel, err := filepath.Rel(k.data, name); err == nil && k.data != "" {
		name = filepath.ToSlash(rel)
	} else {
		name = filepath.Base(name)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	was, ok := k.files[name]
	if ok && was != sum {
		return fail("%s holds an experiment on another file: %s has the checksum %s there and %s here; use the same file, or a new directory", k.dir, name, was, sum)
	}
	k.files[name] = sum
	if !ok {
		return k.add(line{File: name, SHA256: sum})
	}
	return nil
}

// add writes a line; before begin, it waits. k.mu is held.
func (k *keeper) add(l line) error {
	if k.file == nil {
		k.pending = append(k.pending, l)
		return nil
	}
	b, err := json.Marshal(l)
	if err == nil {
		_, err = k.file.Write(append(b, '\n'))
	}
	return err
}

// begin makes the directory and the file, and cuts off an incomplete last line, which a crash leaves.
func (k *keeper) begin() error {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.unlock != nil {
		return nil
	}
	if err := k.same(); err != nil {
		return err
	}
	if err := os.MkdirAll(k.dir, 0o777); err != nil {
		return err
	}
	var err error
	if k.unlock, err = run.LockDir(k.dir); err != nil {
		return &run.InputError{Where: "--out", Err: err}
	}
	if k.judge {
		return nil
	}
	f, err := readfile.OpenFile(filepath.Join(k.dir, keptFile), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return err
	}
	k.file = f
	if err := f.Truncate(k.whole); err != nil {
		return err
	}
	if _, err := f.Seek(k.whole, io.SeekStart); err != nil {
		return err
	}
	for _, l := range k.pending {
		if err := k.add(l); err != nil {
			return err
		}
	}
	return nil
}

// now is a line with what the piece has taken.
func (k *keeper) now() line {
	return line{Wall: time.Since(k.began).Seconds(), Processor: Processor() - k.processor}
}

// end ends the piece and closes the file. Without results, nothing is written.
func (k *keeper) end() error {
	if k.unlock == nil {
		return nil
	}
	if k.judge {
		k.unlock()
		return nil
	}
	l := k.now()
	l.Load = Load()
	k.pieces[len(k.pieces)-1].until(l)
	err := k.add(l)
	k.unlock()
	if e := k.file.Close(); err == nil {
		err = e
	}
	return err
}

// taken finds the kept result of a job.
func (k *keeper) taken(job string, result any) (bool, error) {
	if k == nil || k.results[job] == nil {
		if k != nil && k.judge {
			return false, fail("%s lacks the result of job %s; repeat the command that made it, with its program, and judge then",
				k.dir, job)
		}
		return false, nil
	}
	return true, gob.NewDecoder(bytes.NewReader(k.results[job])).Decode(result)
}

// keep writes the result of a job.
func (k *keeper) keep(job string, result any) error {
	if k == nil {
		return nil
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(result); err != nil {
		return err
	}
	l := k.now()
	l.Job, l.Result = job, b.Bytes()
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.add(l)
}

// plain refuses types of which a stored value would lack something.
func plain(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return plain(t.Elem())
	case reflect.Map:
		if err := plain(t.Key()); err != nil {
			return err
		}
		return plain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); !f.IsExported() {
				return fmt.Errorf("%s has a field %s, which is not exported and would not be stored", t, f.Name)
			} else if err := plain(f.Type); err != nil {
				return err
			}
		}
	case reflect.Func, reflect.Chan, reflect.Interface, reflect.UnsafePointer:
		return fmt.Errorf("a value of type %s cannot be stored", t)
	}
	return nil
}

// Begin makes the directory of the results, once all input is known to be good. files are datasets that the experiment
// reads by itself; those of Read need not be among them.
func (l *Lab) Begin(files ...string) error {
	for _, f := range files {
		if err := l.keeper.reads(f); err != nil {
			return err
		}
	}
	return l.keeper.begin()
}

// keeperOf is the keeper of an experiment that runs in ctx.
func keeperOf(ctx context.Context) *keeper {
	k, _ := ctx.Value(keeperKey{}).(*keeper)
	return k
}
