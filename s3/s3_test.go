package s3

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/datatest"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/internal/race"
	"github.com/sottodp/sotto/schema"
	"github.com/sottodp/sotto/schema/schematest"
)

// A store is a server of objects. Each request must be signed, and read a range of the version that was answered first.
type store struct {
	t       *testing.T
	mu      sync.Mutex
	objects map[string][]byte
	tags    map[string]string // of objects, once they were read
	version int
	ranges  []string
	fault   func(w http.ResponseWriter, request int) bool // the fault has answered
	ignore  bool                                          // If-Match
}

func newStore(t *testing.T) *store {
	s := &store{t: t, objects: map[string][]byte{}, tags: map[string]string{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_ENDPOINT_URL_S3": "", "AWS_ACCESS_KEY_ID": "AKTEST", "AWS_SECRET_ACCESS_KEY": "SECRET123", "AWS_SESSION_TOKEN": "TOKEN123",
		"AWS_REGION": "eu-test-1"} {
		t.Setenv(name, value)
	}
	was := firstPause
	firstPause = time.Microsecond
	t.Cleanup(func() { firstPause = was })
	return s
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	signed := r.Header.Get("Authorization")
	want := "SignedHeaders=host;"
	if tag := s.tags[r.URL.Path]; tag != "" {
		want += "if-match;"
	}
	if !strings.Contains(signed, "Credential=AKTEST/") || !strings.Contains(signed, "/eu-test-1/s3/aws4_request") || !strings.Contains(signed, want+"range;") || r.Method != http.MethodGet || r.Header.Get("Range") == "" || r.Header.Get("If-Match") != s.tags[r.URL.Path] || r.URL.RawQuery != "" {
		s.t.Errorf("%s %s: %v", r.Method, r.URL, r.Header)
	}
	s.ranges = append(s.ranges, r.Header.Get("Range"))
	if s.fault != nil && s.fault(w, len(s.ranges)) {
		return
	}
	b, ok := s.objects[r.URL.Path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "<Error><Code>NoSuchKey</Code><Message>SECRET123</Message></Error>")
		return
	}
	tag := fmt.Sprintf("%q", fmt.Sprint("v", s.version))
	if s.tags[r.URL.Path] == "" {
		s.tags[r.URL.Path] = tag
	}
	w.Header().Set("ETag", tag)
	if s.ignore {
		r.Header.Del("If-Match")
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
}

// put stores an object, whose URL it returns.
func (s *store) put(key string, b []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.objects["/bucket/"+key] = b
	return "s3://bucket/" + key
}

func (s *store) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ranges)
}

// noise is content without a pattern.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// TestTables: an object is the table that the file is, with its content mark, whatever its form.
func TestTables(t *testing.T) {
	race.Skip(t)
	st := newStore(t)
	s, err := schema.Parse("schema.yaml", []byte(strings.Replace(schematest.Small, "rows: 100", "rows: 100000", 1)))
	if err != nil {
		t.Fatal(err)
	}
	file := func(parts ...string) []byte {
		b, err := os.ReadFile(filepath.Join(parts...))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	csv := "age,colour,id,gain,sick\n" + strings.Repeat("41,red,x,2.5,yes\n,green,y,1,no\n", 40_000) // more than a block
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	io.WriteString(z, csv)
	z.Close()
	dir := t.TempDir()
	local := filepath.Join(dir, "local.csv")
	if err := os.WriteFile(local, []byte(csv), 0o600); err != nil {
		t.Fatal(err)
	}
	key := &data.RowKey{Secret: make([]byte, 32)}
	packed := filepath.Join(dir, "local.pack")
	opt := data.Options{Formats: source.Formats()}
	if _, err := data.Pack(context.Background(), &datatest.Gate{Key: key}, s, local, packed, opt); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"visits of 2024.csv": []byte(csv),
		"a/b+c.csv.gz":       zipped.Bytes(),
		"t.parquet":          file("..", "data", "testdata", "small.parquet"),
		"t.arrow":            file("..", "data", "source", "testdata", "arrow", "zstd.arrow"),
		"t.pack":             file(packed),
	} {
		t.Run(name, func(t *testing.T) {
			url := st.put(name, b)
			path := filepath.Join(dir, "file")
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			gate, other := &datatest.Gate{Key: key}, &datatest.Gate{Key: key}
			want, _, err := data.Read(context.Background(), gate, s, path, opt)
			if err != nil {
				t.Fatal(err)
			}
			defer want.Close()
			for range 2 {
				got, _, err := data.Read(context.Background(), other, s, url, opt)
				if err != nil {
					t.Fatal(err)
				}
				if len(got.Blocks) != len(want.Blocks) || !slices.Equal(got.Blocks[0].X, want.Blocks[0].X) || !slices.Equal(got.Blocks[0].Y, want.Blocks[0].Y) {
					t.Error("other rows")
				}
				if d := cmp.Diff(gate.Content, other.Content); d != "" {
					t.Error(d)
				}
				got.Close()
			}
			a, err1 := data.Describe(context.Background(), path, opt.Formats)
			b, err2 := data.Describe(context.Background(), url, opt.Formats)
			if err1 != nil || err2 != nil || !cmp.Equal(a.Fields, b.Fields) || a.Form != b.Form {
				t.Errorf("%v, %v: %v %v", a, b, err1, err2)
			}
		})
	}
	both, _, err := data.Read(context.Background(), &datatest.Gate{}, s, "s3://bucket/visits of 2024.csv"+data.Plus+local, opt)
	if err != nil || both.Rows() != 160_000 {
		t.Errorf("an object and a file as one table: %v", err)
	}
}

// TestRanges: whatever is read in whatever order is what is stored; a reader from the beginning makes few requests.
func TestRanges(t *testing.T) {
	st := newStore(t)
	want := noise(70*blockSize + 12345)
	f, err := open(st.put("x", want))
	if err != nil {
		t.Fatal(err)
	}
	if n := st.requests(); n != 1 || f.Size() != int64(len(want)) {
		t.Fatalf("%d requests, %d bytes", n, f.Size())
	}
	got, err := io.ReadAll(f)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if n := st.requests(); n > 8 { // 1, 2, 4, 8, 16, 32 blocks, and the rest
		t.Errorf("%d requests: %v", n, st.ranges)
	}
	before := st.requests()
	if f, err = open("s3://bucket/x"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, want) || st.requests() != before {
		t.Errorf("a second reader: %v, %d further requests", err, st.requests()-before)
	}

	large := noise((blocks + 60) * blockSize)
	f, err = open(st.put("large", large))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for part := range 4 { // at the same time, more than is kept
		all.Go(func() {
			b := make([]byte, 3*blockSize/2)
			for i := part; (i+1)*len(b) <= len(large); i += 4 {
				if _, err := f.ReadAt(b, int64(i*len(b))); err != nil || !bytes.Equal(b, large[i*len(b):][:len(b)]) {
					t.Errorf("part %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
	o := opened.objects[mustOrigin(t, "s3://bucket/large").url.String()]
	if len(o.kept) > blocks {
		t.Errorf("%d blocks are kept", len(o.kept))
	}
	if n, err := f.ReadAt(make([]byte, 10), f.Size()-4); n != 4 || err != io.EOF {
		t.Errorf("the end: %d, %v", n, err)
	}
	if f, err := open(st.put("empty", nil)); err != nil || f.Size() != 0 {
		t.Errorf("an empty object: %v", err)
	}
}

func mustOrigin(t *testing.T, path string) *origin {
	t.Helper()
	s, err := newOrigin(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// answers make a fault of answers that fail from one request to another.
func answers(from, to int, answer func(w http.ResponseWriter)) func(http.ResponseWriter, int) bool {
	return func(w http.ResponseWriter, n int) bool {
		if n < from || n > to {
			return false
		}
		answer(w)
		return true
	}
}

func status(c int, code string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("X-Amz-Bucket-Region", "eu-west-9")
		w.Header().Set("Location", "http://elsewhere.example/SECRET123")
		w.WriteHeader(c)
		fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>SECRET123</Message></Error>", code)
	}
}

// cut answers with fewer bytes than it says.
func cut(w http.ResponseWriter) {
	w.Header().Set("ETag", `"v1"`)
	w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", blockSize-1, 3*blockSize))
	w.Header().Set("Content-Length", fmt.Sprint(blockSize))
	w.WriteHeader(http.StatusPartialContent)
	w.Write([]byte("few"))
}

// TestFaults: what passes is tried again; what does not is an error that says what to do, without a secret.
func TestFaults(t *testing.T) {
	const forever = 1 << 30
	content := noise(3 * blockSize)
	for name, c := range map[string]struct {
		fault   func(http.ResponseWriter, int) bool
		content []byte
		again   bool   // the object is replaced after the first request
		ignore  bool   // by a store that ignores If-Match
		want    string // in the error; "": none
		failed  bool   // the error is of the machine or the network
	}{
		"slow down":         {fault: answers(1, 3, status(503, "SlowDown")), content: content},
		"slow down later":   {fault: answers(2, 4, status(503, "SlowDown")), content: content},
		"cut":               {fault: answers(1, 2, cut), content: content},
		"down":              {fault: answers(1, forever, status(503, "SlowDown")), content: content, want: "data: reading s3://bucket/k: the store answers SlowDown; 6 attempts failed", failed: true},
		"down later":        {fault: answers(2, forever, status(500, "InternalError")), content: content, want: "the store answers InternalError", failed: true},
		"always cut":        {fault: answers(1, forever, cut), content: content, want: "the connection ended too early", failed: true},
		"forbidden":         {fault: answers(1, 1, status(403, "AccessDenied")), content: content, want: "s3://bucket/k: found an object that these credentials may not read (AccessDenied)"},
		"expired later":     {fault: answers(2, 2, status(403, "ExpiredToken")), content: content, want: "may not read (ExpiredToken)"},
		"absent":            {want: "s3://bucket/k: found no such object; expected an object of bucket bucket"},
		"elsewhere":         {fault: answers(1, 1, status(301, "PermanentRedirect")), content: content, want: "(write AWS_REGION=eu-west-9)"},
		"odd code":          {fault: answers(1, 1, status(418, "SECRET123")), content: content, want: "the store answers status 418", failed: true},
		"replaced":          {content: content, again: true, want: "found another object than when it was opened first: it was replaced or deleted; expected the same object for the whole run"},
		"replaced, ignored": {content: content, again: true, ignore: true, want: "found another object than when it was opened first"},
		"deleted":           {fault: answers(2, 2, status(404, "NoSuchKey")), content: content, want: "found another object than when it was opened first"},
		"whole": {fault: answers(1, 1, func(w http.ResponseWriter) { w.Write(content) }), content: content,
			want: "found a store that does not read in ranges"},
		"no version": {fault: answers(1, 1, func(w http.ResponseWriter) {
			w.Header().Set("Content-Range", "bytes 0-2/3")
			w.WriteHeader(206)
			w.Write([]byte("abc"))
		}), want: "found a store that names no version of the object"},
		"other range": {fault: answers(1, 1, func(w http.ResponseWriter) {
			w.Header().Set("Content-Range", "bytes 1-2/3")
			w.WriteHeader(206)
			w.Write([]byte("bc"))
		}), want: "found an answer that is not the range that was asked for"},
		"huge": {fault: answers(1, 1, func(w http.ResponseWriter) {
			w.Header().Set("Content-Range", "bytes 0-9223372036854775806/9223372036854775807")
			w.WriteHeader(206)
		}), want: "found an answer that is not the range that was asked for"},
	} {
		t.Run(name, func(t *testing.T) {
			st := newStore(t)
			st.fault, st.ignore = c.fault, c.ignore
			url := "s3://bucket/k"
			if c.content != nil {
				st.put("k", c.content)
			}
			f, err := open(url)
			var got []byte
			if err == nil {
				if c.again {
					st.put("k", c.content)
				}
				if got, err = io.ReadAll(f); err == nil && !bytes.Equal(got, c.content) {
					t.Error("other bytes")
				}
				if err != f.Err() {
					t.Errorf("Err: %v, want %v", f.Err(), err)
				}
			}
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "SECRET1") || strings.Contains(err.Error(), "127.0.0.1") {
				t.Fatalf("found %v", err)
			}
			if bad := errors.As(err, new(*config.Error)); bad == c.failed {
				t.Errorf("%T", err)
			}
			n := st.requests()
			if _, again := open(url); again == nil || again.Error() != err.Error() || st.requests() != n {
				t.Errorf("a second time: %v", again)
			}
		})
	}
}

// A table that cannot be read further says why, whatever reader there is between.
func TestReplacedTable(t *testing.T) {
	s, err := schema.Parse("schema.yaml", []byte(strings.Replace(schematest.Small, "rows: 100", "rows: 100000", 1)))
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"t.parquet": "../data/testdata/small.parquet", "t.arrow": "../data/source/testdata/arrow/zstd.arrow"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		st := newStore(t)
		st.fault = answers(1, 1<<30, status(403, "AccessDenied"))
		_, _, err = data.Read(context.Background(), &datatest.Gate{}, s, st.put(name, b), data.Options{Formats: source.Formats()})
		if err == nil || !strings.Contains(err.Error(), "may not read (AccessDenied)") {
			t.Errorf("%s: %v", name, err)
		}
	}
	csv := "age,colour,id,gain,sick\n" + strings.Repeat("41,red,x,2.5,yes\n", 40_000)
	var zipped bytes.Buffer
	z, _ := gzip.NewWriterLevel(&zipped, gzip.NoCompression)
	io.WriteString(z, csv)
	z.Close()
	for name, b := range map[string][]byte{"t.csv": []byte(csv), "t.csv.gz": zipped.Bytes()} {
		st := newStore(t)
		st.fault = answers(2, 1<<30, status(412, "PreconditionFailed"))
		_, _, err = data.Read(context.Background(), &datatest.Gate{}, s, st.put(name, b), data.Options{Formats: source.Formats()})
		if err == nil || !strings.Contains(err.Error(), "it was replaced or deleted") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNames: what a URL or an address must not have is refused without being shown.
func TestNames(t *testing.T) {
	newStore(t)
	for url, want := range map[string]string{
		"s3://":                          "s3://: found no name of an object; expected s3://bucket/key",
		"s3://bucket":                    "s3://bucket: found no name of an object",
		"s3://bucket/dir/":               "found no name of an object",
		"s3://user:SECRET123@bucket/k":   "s3://…@bucket/k: found no name of an object",
		"s3://bucket/k?X-Amz-S=SECRET1":  "s3://bucket/k: found no name of an object",
		"s3://Bucket_/k":                 "found no name of an object",
		"s3://bucket/visits-*.csv":       "found a pattern; expected the key of an object (name the objects in a list",
		"s3://bucket/people.db?table=id": "s3://bucket/people.db: found no name of an object",
	} {
		if err := read(url); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET1") {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, end := range []string{"https://u:SECRET123@host", "ftp://host", "https://host?SECRET123", "://SECRET123", "host"} {
		t.Setenv("AWS_ENDPOINT_URL_S3", end)
		if err := read("s3://bucket/k"); err == nil || !strings.Contains(err.Error(), "AWS_ENDPOINT_URL: found an address that does not read") || strings.Contains(err.Error(), "SECRET1") {
			t.Errorf("%s: %v", end, err)
		}
	}
	t.Setenv("AWS_ENDPOINT_URL_S3", "")
	t.Setenv("AWS_ENDPOINT_URL", "")
	for url, want := range map[string]string{"s3://bucket/a b+c": "https://bucket.s3.eu-test-1.amazonaws.com/a%20b%2Bc", "s3://a.bucket/k/x": "https://s3.eu-test-1.amazonaws.com/a.bucket/k/x"} {
		if got := mustOrigin(t, url).url.String(); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

func read(url string) error {
	_, err := data.Describe(context.Background(), url, source.Formats())
	return err
}

// A server that does not answer does not keep a command from ending, at whichever request.
func TestStop(t *testing.T) {
	defer StopWith(context.Background())
	s, err := schema.Parse("schema.yaml", []byte(strings.Replace(schematest.Small, "rows: 100", "rows: 100000", 1)))
	if err != nil {
		t.Fatal(err)
	}
	opt := data.Options{Formats: source.Formats()}
	for silent := 1; silent <= 3; silent++ {
		st := newStore(t)
		st.objects["/bucket/t.csv"] = []byte("age,colour,id,gain,sick\n" + strings.Repeat("44,red,x,5,no\n", 60_000))
		ctx, cancel := context.WithCancel(t.Context())
		StopWith(ctx)
		answer := make(chan struct{})
		st.fault = func(_ http.ResponseWriter, n int) bool {
			if n < silent {
				return false
			}
			cancel()
			<-answer
			return true
		}
		_, _, err := data.Read(ctx, &datatest.Gate{}, s, "s3://bucket/t.csv", opt)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("request %d: %v", silent, err)
		}
		close(answer)
		cancel()
	}
}
