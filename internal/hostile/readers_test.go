//go:build linux

package hostile

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"golang.org/x/crypto/ssh"

	"github.com/sottodp/sotto/access"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/datatest"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/gossip/agreement"
	"github.com/sottodp/sotto/gossip/netplan"
	"github.com/sottodp/sotto/gossip/party"
	"github.com/sottodp/sotto/gossip/transport"
	"github.com/sottodp/sotto/ledger"
	"github.com/sottodp/sotto/model"
	"github.com/sottodp/sotto/page"
	"github.com/sottodp/sotto/page/disclosure"
	"github.com/sottodp/sotto/privacy"
	"github.com/sottodp/sotto/record"
	"github.com/sottodp/sotto/run"
	"github.com/sottodp/sotto/run/job"
	"github.com/sottodp/sotto/run/runlog"
	"github.com/sottodp/sotto/schema"
	"github.com/sottodp/sotto/schema/schematest"
)

// A sample is the files of one input.
type sample []file

type file struct {
	name    string
	content []byte
	fixed   bool // no mutation changes it
}

// A reader reads files of one kind.
type reader struct {
	name   string
	share  int // of all inputs
	corpus func() []sample
	wrap   func(r *rand.Rand, s sample) sample // after the mutations: compresses, encodes, repairs checksums; may be nil
	read   func(dir string, r *rand.Rand) error
}

// input is input n: first the corpus itself, then mutations of it.
func (d *reader) input(r *rand.Rand, corpus []sample, n int) sample {
	if n < len(corpus) {
		if d.wrap != nil {
			return d.wrap(r, slices.Clone(corpus[n]))
		}
		return corpus[n]
	}
	s := slices.Clone(corpus[r.IntN(len(corpus))])
	other := corpus[r.IntN(len(corpus))]
	for more := true; more; more = r.IntN(4) == 0 {
		var free []int
		for i, f := range s {
			if !f.fixed {
				free = append(free, i)
			}
		}
		i := free[r.IntN(len(free))]
		s[i].content = mutate(r, s[i].content, other[r.IntN(len(other))].content)
	}
	if d.wrap != nil {
		s = d.wrap(r, s)
	}
	return s
}

var readers = []reader{
	{"csv", 12, texts("t", smallCSV, visitsCSV), nil, table("t", schematest.Small, schematest.UnitSmall, schematest.Visits, dropping)},
	{"compressed", 6, texts("t", smallCSV, jsonLines), compressed, table("t", schematest.Small, dropping)},
	{"encodings", 6, texts("t", smallCSV, visitsCSV), encoded, table("t", schematest.Small, inUTF16, inLatin)},
	{"jsonl", 10, texts("t.jsonl", jsonLines, `{"age":1}`+"\n"), nil, table("t.jsonl", schematest.Small, schematest.UnitSmall, dropping)},
	{"libsvm", 8, texts("t", "+1 1:1 3:-2 5:0\n\n-1.0\t2:9e0 \r\n1\n+1 5:"+number+"\n"+secret+" 1:1\n", "-1 1:0.5 2:"+secret+" # comment\n"), nil, table("t", schematest.SVM)},
	{"idx", 6, pictures, nil, images},
	{"parquet", 6, parquets, nil, table("t.parquet", schematest.Small, dropping)},
	{"arrow", 6, arrows, nil, table("t.arrow", schematest.Small, dropping)},
	{"pack", 6, packs, repairPack, table("t", schematest.Small, schematest.SVM, schematest.Visits)},
	{"sqlite-table", 2, sqliteTables, nil, table("t.db?table=people", schematest.Small, dropping)},
	{"schema", 8, schemas, nil, readSchema},
	{"spec", 8, specs, nil, readSpec},
	{"model", 6, models, nil, func(dir string, _ *rand.Rand) error {
		_, err := model.Read(filepath.Join(dir, "model.json"))
		_, other := run.LoadModel(filepath.Join(dir, "model.json"))
		return errors.Join(err, other)
	}},
	{"run", 2, runs("finished", "finished-zcdp", "finished-gdp", "tuned", "lab"), repairRun, readRun},
	{"states", 2, runs("int-states", "int-filtered"), repairRun, readRun},
	{"owner", 1, runs("node", "node-killed"), repairRun, readRun},
	{"evaluation", 4, evaluations, nil, readRun},
	{"ledger", 1, ledgers, alterLedger, readLedger},
	{"disclosure", 1, disclosures, nil, readDisclosure},
	{"events", 8, events, nil, readEvent},
	{"network", 4, networks, nil, readNetwork},
	{"messages", 1, messages, nil, meet},
	{"journal", 4, journals, repairJournal, readJournal},
}

// must is for what makes a corpus.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// files is the directory of the module.
func files(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func stored(name string) []byte {
	return must(os.ReadFile(filepath.Join(os.Getenv("SOTTO_HOSTILE_FILES"), filepath.FromSlash(name))))
}

const upgrade = "cli/testdata/upgrade/files/"

func text(name, content string) sample { return sample{{name: name, content: []byte(content)}} }

func texts(name string, all ...string) func() []sample {
	return func() (s []sample) {
		for _, content := range all {
			s = append(s, text(name, content))
		}
		return s
	}
}

// Tables.

const (
	smallCSV = `age,colour,id,gain,sick
44,red,` + secret + `,999.25,no
100,green,"it's, so",` + number + `,yes.
` + secret + `,1.0,b,5,no
?,,"` + secret + `
on two lines",,yes
17,` + secret + `,c,1e-3,no
60,red,d,17,` + secret + `
`
	visitsCSV = "patient_id,who,age,sick\n" + secret + ",1,40,no\n\"a\",2," + number + ",yes\n,3,2,no\na,2,2\nb," + secret + ",9,no\n" + secret + ",1,41,no\n"
	jsonLines = `{"age":44,"colour":"red","id":"` + secret + `","gain":999.25,"sick":"no"}
{"id":{"a":["` + secret + `"]},"age":` + number + `,"colour":"green","gain":5,"sick":"yes"}
{"age":"` + secret + `","colour":"1.0","id":null,"gain":null,"sick":"no"}
{"age":17,"colour":"` + secret + `","id":"x","gain":0.001,"sick":"` + secret + `"}
`
)

var (
	dropping = "on_bad_row: drop\n" + schematest.Small
	inUTF16  = strings.Replace(schematest.Small, "format: {", "format: {encoding: utf-16, multiline: true, ", 1)
	inLatin  = strings.Replace(schematest.Small, "format: {", "format: {encoding: windows-1252, multiline: true, ", 1)
)

// table reads a table under one of the schemas, and what needs no schema.
func table(name string, texts ...string) func(string, *rand.Rand) error {
	schemas := sync.OnceValue(func() (all []*schema.Schema) {
		for _, text := range texts {
			all = append(all, must(schema.Parse("schema.yaml", []byte(text))))
		}
		return all
	})
	return func(dir string, r *rand.Rand) error {
		path := filepath.Join(dir, name)
		switch r.IntN(8) {
		case 0:
			_, err := access.Describe(context.Background(), path)
			return err
		case 1:
			_, err := access.Skeleton(context.Background(), path, "")
			return err
		case 2:
			_, err := access.OutlineOf(context.Background(), path, "")
			return err
		}
		opt := data.Options{Formats: source.Formats()}
		if r.IntN(4) == 0 {
			opt.Unlabeled, opt.KeepBad = true, true
		}
		opt.ByRow = r.IntN(4) == 0
		if r.IntN(4) == 0 {
			opt.Rows = 6
		}
		gate := &datatest.Gate{}
		if r.IntN(4) == 0 {
			gate.Key = &data.RowKey{Secret: make([]byte, 32)}
		}
		s := schemas()[r.IntN(len(texts))]
		if r.IntN(16) == 0 {
			_, err := data.Pack(context.Background(), gate, s, path, filepath.Join(dir, "packed"), opt)
			return err
		}
		t, _, err := data.Read(context.Background(), gate, s, path, opt)
		if err == nil {
			err = t.Close()
		}
		return err
	}
}

// compressed compresses a file, and then may change what came out.
func compressed(r *rand.Rand, s sample) sample {
	var b bytes.Buffer
	switch r.IntN(3) {
	case 0:
		w := gzip.NewWriter(&b)
		must(w.Write(s[0].content))
		must(0, w.Close())
	case 1:
		w := must(zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<16)))
		must(w.Write(s[0].content))
		must(0, w.Close())
	case 2:
		w := zip.NewWriter(&b)
		f := must(w.Create("t.csv"))
		must(f.Write(s[0].content))
		must(0, w.Close())
	}
	s[0].content = b.Bytes()
	if r.IntN(2) == 0 {
		s[0].content = mutate(r, s[0].content, s[0].content)
	}
	return s
}

func encoded(r *rand.Rand, s sample) sample {
	var order binary.AppendByteOrder = binary.LittleEndian
	if r.IntN(2) == 0 {
		order = binary.BigEndian
	}
	var b []byte
	if r.IntN(4) > 0 {
		b = order.AppendUint16(b, 0xfeff)
	}
	for _, u := range utf16.Encode([]rune(string(s[0].content))) {
		b = order.AppendUint16(b, u)
	}
	s[0].content = b
	if r.IntN(2) == 0 {
		s[0].content = mutate(r, b, b)
	}
	return s
}

// pictures are images and labels, two files.
func pictures() []sample {
	idx := func(n uint32, dims []uint32, values ...byte) []byte {
		b := []byte{0, 0, 8, byte(1 + len(dims))}
		for _, d := range append([]uint32{n}, dims...) {
			b = binary.BigEndian.AppendUint32(b, d)
		}
		return append(b, values...)
	}
	return []sample{
		{{name: "images", content: idx(3, []uint32{2, 3}, make([]byte, 18)...)}, {name: "labels", content: idx(3, nil, 3, 7, 7)}},
		{{name: "images", content: idx(1<<31, []uint32{2, 3})}, {name: "labels", content: idx(1<<31, nil)}},
		{{name: "images", content: idx(1, []uint32{2, 3}, 1, 2, 3, 4, 5, 6)}, {name: "labels", content: idx(1, nil, 9)}},
	}
}

func images(dir string, r *rand.Rand) error {
	s, err := schema.Parse("schema.yaml", []byte(schematest.Pictures))
	if err != nil {
		return err
	}
	opt := data.Options{Formats: source.Formats(), Labels: filepath.Join(dir, "labels"), Coding: data.Coding{Bytes: r.IntN(2) == 0}, KeepBad: r.IntN(2) == 0}
	t, _, err := data.Read(context.Background(), &datatest.Gate{}, s, filepath.Join(dir, "images"), opt)
	if err == nil {
		err = t.Close()
	}
	return err
}

func parquets() []sample {
	type row struct {
		Sick  *string  `parquet:"sick,optional"`
		Gain  *float64 `parquet:"gain,optional"`
		ID    string   `parquet:"id"`
		Age   *float32 `parquet:"age,optional"`
		Color *string  `parquet:"colour,optional,dict"`
	}
	var rows []row
	for i := range 20 {
		sick, gain, age, color := []string{"no", "yes", secret}[i%7%3], []float64{5, 999.25, 471147.1147}[i%3], float32(i), []string{"red", "green", secret}[i%5%3]
		rows = append(rows, row{&sick, &gain, secret, &age, &color})
	}
	all := []sample{text("t.parquet", string(stored("data/testdata/small.parquet")))}
	for _, codec := range []parquet.WriterOption{parquet.Compression(&parquet.Uncompressed), parquet.Compression(&parquet.Snappy), parquet.Compression(&parquet.Gzip), parquet.Compression(&parquet.Zstd)} {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[row](&b, codec, parquet.MaxRowsPerRowGroup(8))
		must(w.Write(rows))
		must(0, w.Close())
		all = append(all, text("t.parquet", b.String()))
	}
	return all
}

func arrows() (all []sample) {
	for _, name := range []string{"few.arrow", "few-lz4.arrows", "few-polars.arrow", "v1.feather", "zstd.arrow", "delta.arrows"} {
		all = append(all, text("t.arrow", string(stored("data/source/testdata/arrow/"+name))))
	}
	return all
}

func packs() (all []sample) {
	dir := must(os.MkdirTemp(".", "packs"))
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	for _, c := range [][2]string{{schematest.Small, "age,colour,id,gain,sick\n44,red,a,999.25,no\n40,green,b,5,yes\n"}, {schematest.SVM, "+1 1:1 3:-2 5:0\n-1 2:1\n"}, {schematest.Visits, visitsCSV}} {
		must(0, os.WriteFile(src, []byte(c[1]), 0o600))
		must(data.Pack(context.Background(), &datatest.Gate{Key: &data.RowKey{Secret: make([]byte, 32)}}, must(schema.Parse("s", []byte(c[0]))), src, dst, data.Options{Formats: source.Formats()}))
		all = append(all, text("t", string(must(os.ReadFile(dst)))))
	}
	return all
}

// repairPack sets the checksum of header and footer, so that what they hold is read.
func repairPack(r *rand.Rand, s sample) sample {
	b := s[0].content
	if r.IntN(4) > 0 && len(b) >= 64 {
		if o := binary.LittleEndian.Uint64(b[16:]); o <= uint64(len(b)) {
			b = bytes.Clone(b)
			sum := sha256.Sum256(append(slices.Clone(b[:32]), b[o:]...))
			copy(b[32:], sum[:])
			s[0].content = b
		}
	}
	return s
}

func sqliteTables() []sample {
	path := filepath.Join(must(os.MkdirTemp(".", "sqlite")), "t.db")
	db := must(sql.Open("sqlite", path))
	defer db.Close()
	must(db.Exec("CREATE TABLE people (age, colour TEXT, id TEXT, gain REAL, sick TEXT)"))
	for i := range 20 {
		must(db.Exec("INSERT INTO people VALUES (?, ?, ?, ?, ?)", i, []string{"red", "green", secret}[i%7%3], secret, []float64{5, 471147.1147}[i%5%2], []string{"no", "yes", secret}[i%11%3]))
	}
	return []sample{text("t.db", string(must(os.ReadFile(path))))}
}

// Schemas, specs, models.

func schemas() (all []sample) {
	for _, s := range []string{schematest.Small, schematest.UnitSmall, schematest.SVM, schematest.Pictures, schematest.Visits, schematest.Bank, "dataset: &a [*a]\n", "columns: [{name: y, type: label, classes: [a, b]}]\n<<: {a: 1}\n? x\n"} {
		all = append(all, text("schema.yaml", s))
	}
	for _, name := range []string{"adult/schema.yaml", "clinic/schema.yaml", "mnist/scattering.yaml", "mnist/waves.yaml"} {
		all = append(all, text("schema.yaml", string(stored("examples/"+name))))
	}
	return all
}

func readSchema(dir string, _ *rand.Rand) error {
	s, err := data.LoadSchema(filepath.Join(dir, "schema.yaml"))
	if err != nil {
		return err
	}
	b, err := s.Marshal()
	if err != nil {
		return err
	}
	s.Fingerprint()
	s.Assumptions()
	_, err = schema.FromJSON(b)
	return err
}

func specs() (all []sample) {
	for _, name := range []string{"examples/adult/sotto.yaml", "examples/bank/sotto.yaml", "examples/clinic/sotto.yaml", "examples/mnist/cnn.yaml", "examples/mnist/sotto.yaml", "examples/network/sotto.yaml", "examples/visits/sotto.yaml", upgrade + "spec.yaml", upgrade + "net.yaml"} {
		all = append(all, text("spec.yaml", string(stored(name))))
	}
	for _, s := range []string{
		"compare: {methods: [sgd, {label: a, name: sgd, steps: 1}], epsilon: [1, none], tables: [{data: [a], model: {name: svm}}, {delta: 1e-5}], split: .5}\n",
		"data: a.csv\nschema: s.yaml\nmodel: {name: logistic}\ntune: {methods: [sgd, {name: gd, steps: 3}], mean: 4, loss_bound: 2}\nprivacy: {epsilon: 1, delta: 1e-6, adjacency: add-or-remove}\n",
		"data: |\n  text\nmethod: {? [1]: 2}\nseed: 0x10\n",
	} {
		all = append(all, text("spec.yaml", s))
	}
	return all
}

func readSpec(dir string, _ *rand.Rand) error {
	path := filepath.Join(dir, "spec.yaml")
	_, a := run.LoadSpec(path, []run.Override{{Path: "method.steps", Value: "10", From: "--set method.steps"}})
	_, b := job.LoadComparison(path)
	_, _, c := job.LoadTuning(path)
	_, _, d := netplan.Load(path)
	return errors.Join(a, b, c, d)
}

func models() (all []sample) {
	for _, name := range []string{"finished", "tuned", "node", "lab"} {
		all = append(all, text("model.json", string(stored(upgrade+name+"/model.json"))))
	}
	for _, s := range []string{`{"format":"sotto-model/1","model":"linear","dim":1,"norm_bound":1,"w":[2]}`, `{"format":"sotto-model/1","model":"softmax","dim":9223372036854775807,"norm_bound":1,"classes":["a","b"],"w":[]}`} {
		all = append(all, text("model.json", s))
	}
	return all
}

// Run directories.

// directory is the files of a directory of the earlier build.
func directory(name string) (s sample) {
	root := filepath.Join(os.Getenv("SOTTO_HOSTILE_FILES"), filepath.FromSlash(upgrade))
	must(0, filepath.WalkDir(filepath.Join(root, name), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == runlog.ReportFile {
			return err
		}
		b, err := os.ReadFile(path)
		s = append(s, file{name: d.Name(), content: bytes.ReplaceAll(b, []byte("@DIR@"), []byte("/nowhere"))})
		return err
	}))
	return s
}

func runs(names ...string) func() []sample {
	return func() (all []sample) {
		for _, name := range names {
			all = append(all, directory(name))
		}
		return all
	}
}

// repairRun sets checksums of releases and journal, and the hashes in run.json, so that what was changed is read.
func repairRun(r *rand.Rand, s sample) sample {
	if r.IntN(4) == 0 {
		return s
	}
	for i, f := range s {
		switch {
		case strings.HasPrefix(f.name, "releases"):
			s[i].content = repairReleases(bytes.Clone(f.content))
		case f.name == runlog.JournalFile:
			s[i].content = repairFrames(bytes.Clone(f.content))
		}
	}
	for i, f := range s {
		if f.name != runlog.InfoFile {
			continue
		}
		var info struct {
			Hashes map[string]string `json:"hashes"`
		}
		if json.Unmarshal(f.content, &info) != nil {
			continue
		}
		for _, g := range s {
			sum := sha256.Sum256(g.content)
			if was := info.Hashes[g.name]; was != "" {
				s[i].content = bytes.ReplaceAll(s[i].content, []byte(was), []byte(hex.EncodeToString(sum[:])))
			}
		}
	}
	return s
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func repairReleases(b []byte) []byte {
	_, rest, _ := bytes.Cut(b, []byte("\n"))
	for len(rest) >= 8 {
		n := int(binary.LittleEndian.Uint32(rest))
		if n > len(rest)-8 {
			break
		}
		binary.LittleEndian.PutUint32(rest[4+n:], crc32.Checksum(rest[:4+n], castagnoli))
		rest = rest[8+n:]
	}
	return b
}

// repairFrames does so for a journal.
func repairFrames(b []byte) []byte {
	_, rest, _ := bytes.Cut(b, []byte("\n"))
	for len(rest) >= 12 {
		n := int(binary.LittleEndian.Uint32(rest))
		binary.LittleEndian.PutUint32(rest[4:], crc32.Checksum(rest[:4], castagnoli))
		if n > len(rest)-12 {
			break
		}
		binary.LittleEndian.PutUint32(rest[8:], crc32.Checksum(rest[12:12+n], castagnoli))
		rest = rest[12+n:]
	}
	return b
}

func readRun(dir string, r *rand.Rand) error {
	ctx := context.Background()
	switch r.IntN(8) {
	case 0:
		known, err := record.Read(dir, nil)
		if err != nil {
			return err
		}
		if _, err := json.Marshal(known); err != nil {
			panic(err) // every record has a JSON form
		}
		_, err = page.Render(known)
		return err
	case 1:
		f := runlog.Follow(dir)
		_, err := f.Read()
		_, other := party.ReadStatus(dir)
		return errors.Join(err, other)
	case 2:
		_, err := runlog.ReadInfo(dir)
		_, token := run.ReservationOf(dir)
		_, seal := runlog.Seal(dir)
		return errors.Join(err, token, seal)
	}
	if run.IsEvaluation(dir) {
		_, err := run.VerifyEvaluation(ctx, dir, nil)
		return err
	}
	found, err := party.Verify(ctx, dir, nil)
	for _, f := range found {
		err = errors.Join(err, errors.New(f.Detail))
	}
	return err
}

func evaluations() []sample {
	return []sample{{
		{name: runlog.EvaluationFile, content: stored("internal/hostile/testdata/evaluation.json")},
	}}
}

func events() (all []sample) {
	for _, e := range []privacy.Event{
		privacy.Gaussian{Sigma: 2}, privacy.Laplace{Scale: 1}, privacy.PureDP{Epsilon: 1},
		privacy.Composed{privacy.Repeated{Count: 100, Of: privacy.PoissonSampled{Rate: 0.01, Of: privacy.Gaussian{Sigma: 2}}}, privacy.ApproxDP{Epsilon: 1, Delta: 1e-6}},
		privacy.Filtered{Currency: privacy.InZCDP, Epsilon: 1, Delta: 1e-8},
	} {
		if b, err := privacy.MarshalEvent(e); err == nil {
			all = append(all, text("event.json", string(b)))
		}
	}
	all = append(all, text("event.json", strings.Repeat(`{"event":"composed","events":[`, 50)))
	for line := range bytes.Lines(stored(upgrade + "tuned/events.jsonl")) {
		var l struct {
			Event json.RawMessage `json:"event"`
		}
		must(0, json.Unmarshal(line, &l))
		all = append(all, text("event.json", string(l.Event)))
	}
	return all
}

func readEvent(dir string, _ *rand.Rand) error {
	e, err := privacy.UnmarshalEvent(must(os.ReadFile(filepath.Join(dir, "event.json"))))
	if err != nil {
		return err
	}
	_, err = privacy.MarshalEvent(e)
	return err
}

// Ledgers.

func ledgers() (all []sample) {
	for _, name := range []string{"caps.db", "zcdp.db", "gdp.db", "rdp.db", "node.db"} {
		all = append(all, text("ledger.db", string(stored(upgrade+name))))
	}
	return all
}

// alterLedger takes the corpus' mutated bytes, or gives one field of the ledger another value by SQL.
func alterLedger(r *rand.Rand, s sample) sample {
	if r.IntN(2) == 0 {
		return s
	}
	all := ledgers()
	s = all[r.IntN(len(all))]
	path := filepath.Join(must(os.MkdirTemp(".", "ledger")), "l.db")
	defer os.RemoveAll(filepath.Dir(path))
	must(0, os.WriteFile(path, s[0].content, 0o600))
	db := must(sql.Open("sqlite", path+"?_pragma=journal_mode(off)&_pragma=synchronous(off)"))
	defer db.Close()
	tables := column(db, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
	for range 1 + r.IntN(3) {
		table := tables[r.IntN(len(tables))]
		columns := column(db, "SELECT name FROM pragma_table_info('"+table+"') ORDER BY cid")
		field := columns[r.IntN(len(columns))]
		rows := column(db, fmt.Sprintf("SELECT rowid FROM %q ORDER BY rowid", table))
		if len(rows) == 0 {
			continue
		}
		row := rows[r.IntN(len(rows))]
		var was []byte
		must(0, db.QueryRow(fmt.Sprintf("SELECT CAST(%q AS BLOB) FROM %q WHERE rowid = %s", field, table, row)).Scan(&was))
		var value any = string(mutate(r, was, was))
		switch r.IntN(6) {
		case 0:
			value = []byte(value.(string))
		case 1:
			value = nil
		case 2:
			value = []int64{-1, 0, 1 << 62, -1 << 63}[r.IntN(4)]
		}
		db.Exec(fmt.Sprintf("UPDATE OR IGNORE %q SET %q = ? WHERE rowid = %s", table, field, row), value) // a constraint may refuse it
	}
	must(0, db.Close())
	return text("ledger.db", string(must(os.ReadFile(path))))
}

// column is the first column of a query.
func column(db *sql.DB, query string) (all []string) {
	rows := must(db.Query(query))
	defer rows.Close()
	for rows.Next() {
		var s string
		must(0, rows.Scan(&s))
		all = append(all, s)
	}
	return all
}

func readLedger(dir string, r *rand.Rand) error {
	ctx := context.Background()
	path := filepath.Join(dir, "ledger.db")
	open := run.ViewLedger
	if r.IntN(4) == 0 {
		open = run.OpenLedger
	}
	l, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer l.Close()
	var out bytes.Buffer
	err = run.VerifyLedger(ctx, &out, l, nil)
	all, listed := l.Datasets(ctx)
	err = errors.Join(err, listed, l.WriteDatasets(&out, all))
	for _, d := range all {
		entries, e := l.Entries(ctx, d.Name)
		_, h := l.History(ctx, d.Name, nil)
		err = errors.Join(err, e, h, d.Write(&out, entries))
	}
	_, known := l.Known(ctx)
	return errors.Join(err, known)
}

// Disclosures.

func disclosures() []sample {
	s := directory("finished")
	s = append(s, file{name: "ledger.db", content: stored(upgrade + "caps.db")})
	for i := range s {
		s[i].fixed = true
	}
	dir := must(os.MkdirTemp(".", "disclosed"))
	(&writer{dir: dir}).put(s)
	ctx := context.Background()
	l := must(run.ViewLedger(ctx, filepath.Join(dir, "ledger.db")))
	defer l.Close()
	text := must(must(disclosure.Make(ctx, dir, l, disclosure.Options{Made: disclosure.Made{At: "2026-11-24T00:00:00Z", Version: "0"}})).Marshal())
	key := must(ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))))
	return []sample{append(s, file{name: "disclosure.json", content: text}, file{name: "disclosure.json" + disclosure.SignatureSuffix, content: must(disclosure.Sign(key, text))},
		file{name: "key.pub", content: ssh.MarshalAuthorizedKey(key.PublicKey())})}
}

func readDisclosure(dir string, r *rand.Rand) error {
	ctx := context.Background()
	path := filepath.Join(dir, "disclosure.json")
	key, err := disclosure.ReadSigner(filepath.Join(dir, "key.pub"))
	d, b, other := disclosure.Read(path)
	err = errors.Join(err, other)
	if other == nil && r.IntN(4) == 0 {
		_, other = d.Render(b)
		return errors.Join(err, other)
	}
	var l *ledger.Ledger
	if r.IntN(4) == 0 {
		if l, other = run.ViewLedger(ctx, filepath.Join(dir, "ledger.db")); other != nil {
			return other
		}
		defer l.Close()
	}
	found, other := disclosure.Check(ctx, dir, l, path, key, disclosure.Made{Version: "0"})
	for _, f := range found {
		err = errors.Join(err, errors.New(f.Detail))
	}
	return errors.Join(err, other)
}

// Networks.

const network = "cli/testdata/upgrade-network/files/"

func networks() (all []sample) {
	for _, name := range []string{"organiser.json", "hub.json", "north/credentials.json"} {
		all = append(all, text("network.json", string(stored(network+name))))
	}
	for _, name := range []string{"node", "node-killed"} {
		all = append(all, sample{{name: "network.json", content: stored(network + "north/credentials.json")}, {name: runlog.AgreedFile, content: stored(upgrade + name + "/agreed.json")}, {name: runlog.ScheduleFile, content: stored(upgrade + name + "/schedule.json")}})
	}
	k := &transport.OwnerKey{Format: "sotto-owner-key/1", Name: "north", Seed: strings.Repeat("5a", 32)}
	for _, v := range []any{k, k.Request()} {
		all = append(all, text("network.json", string(must(json.Marshal(v)))))
	}
	return all
}

func readNetwork(dir string, _ *rand.Rand) error {
	path := filepath.Join(dir, "network.json")
	n, a := transport.ReadNetwork(path)
	if a == nil {
		_, a = n.Config()
	}
	c, b := transport.ReadCredentials(path)
	if b == nil {
		c.Name()
	}
	_, h := transport.ReadHubKeys(path)
	o, e := transport.ReadOrganizer(path)
	if e == nil {
		_, e = o.Hub()
	}
	k, i := transport.ReadOwnerKey(path)
	if i == nil {
		k.Request()
		if b == nil {
			i = c.Take(k)
		}
	}
	r, j := transport.ReadRequest(path)
	if j == nil {
		r.Member()
	}
	_, _, f := agreement.Read(dir, "")
	_, g := party.ReadSchedule(dir)
	return errors.Join(a, b, h, e, f, g, i, j)
}

// messages are what two owners published: a text, and a vector.
func messages() []sample {
	c := make([]*transport.Credentials, 2)
	for i, name := range []string{"north", "south"} {
		path := filepath.Join(must(os.MkdirTemp(".", "owner")), "credentials.json")
		must(0, os.WriteFile(path, stored(network+name+"/credentials.json"), 0o600))
		c[i] = must(transport.ReadCredentials(path))
	}
	s := &recorded{values: map[string][]byte{}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for i := range c {
		all.Go(func() {
			n := &transport.Node{Store: s, Credentials: c[i]}
			must(n.Meet(ctx, "config", []byte("what was agreed")))
			must(n.Share(ctx, 0, []float64{1, 2, float64(i)}))
		})
	}
	all.Wait()
	var one sample
	for key, value := range s.values {
		one = append(one, file{name: strings.ReplaceAll(key, "/", "%"), content: value})
	}
	slices.SortFunc(one, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return []sample{append(one, file{name: "credentials.json", content: stored(network + "north/credentials.json"), fixed: true})}
}

// recorded is a store that keeps what it is given.
type recorded struct {
	transport.Memory
	mu     sync.Mutex
	values map[string][]byte
}

func (s *recorded) Put(ctx context.Context, key string, value []byte) ([]byte, error) {
	s.mu.Lock()
	s.values[key] = value
	s.mu.Unlock()
	return s.Memory.Put(ctx, key, value)
}

// meet is an owner at a store that says what the files hold.
func meet(dir string, _ *rand.Rand) error {
	c, err := transport.ReadCredentials(filepath.Join(dir, "credentials.json"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	n := &transport.Node{Store: lying(dir), Credentials: c}
	_, a := n.Meet(ctx, "config", []byte("what was agreed"))
	_, b := n.Models(ctx, 0, 3)
	return errors.Join(a, b)
}

// lying is a store whose values are the files of a directory.
type lying string

func (s lying) Put(_ context.Context, _ string, value []byte) ([]byte, error) { return value, nil }

func (s lying) Get(_ context.Context, key string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(string(s), strings.ReplaceAll(key, "/", "%")))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, transport.ErrNone
	}
	return b, err
}

func (s lying) Await(ctx context.Context, keys ...string) (int, []byte, error) {
	for i, key := range keys {
		if b, err := s.Get(ctx, key); err == nil {
			return i, b, nil
		}
	}
	return 0, nil, transport.ErrNone
}

func journals() (all []sample) {
	for _, name := range []string{"node", "node-killed"} {
		all = append(all, text("journal.bin", string(stored(upgrade+name+"/journal.bin"))))
	}
	return all
}

func repairJournal(r *rand.Rand, s sample) sample {
	if r.IntN(4) > 0 {
		s[0].content = repairFrames(bytes.Clone(s[0].content))
	}
	return s
}

func readJournal(dir string, _ *rand.Rand) error {
	path := filepath.Join(dir, "journal.bin")
	_, err := runlog.JournalRecord(path)
	j, other := runlog.ReadJournal(path)
	if other != nil {
		return errors.Join(err, other)
	}
	defer j.Close()
	for {
		if _, other := j.Next(); other != nil {
			return errors.Join(err, other)
		}
	}
}
