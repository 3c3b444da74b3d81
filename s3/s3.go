// Package s3 lets a program read tables that are objects of an S3-compatible store:
//
//	import _ "github.com/sottodp/sotto/s3"
//
// The command sotto imports it. An object is read in ranges. The first answer names its version (ETag), and every later
// request asks for that one: a replaced object ends the reading. A process that opens an object again goes on with the
// version that it opened first.
package s3

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/internal/object"
	"github.com/sottodp/sotto/internal/readfile"
)

func init() { object.Register(open) }

const (
	attempts = 6               // at one request
	patience = 2 * time.Minute // for one attempt
	maxError = 64 << 10        // bytes of the text of an error
	// SHA-256 of nothing: a request has no body
	unsigned = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

var firstPause = 200 * time.Millisecond // before the second attempt; each further one is twice as long

var opened struct {
	sync.Mutex
	objects map[string]*objectFile
}

// open opens an object, as before if it was opened before.
func open(path string) (*readfile.File, error) {
	s, err := newOrigin(path)
	if err != nil {
		return nil, err
	}
	opened.Lock()
	defer opened.Unlock()
	o := opened.objects[s.url.String()]
	if o == nil {
		o = &objectFile{origin: s}
		if opened.objects == nil {
			opened.objects = map[string]*objectFile{}
		}
		opened.objects[s.url.String()] = o
	}
	if err := o.begin(); err != nil {
		return nil, err
	}
	return &readfile.File{SectionReader: io.NewSectionReader(o, 0, o.size), Failed: o.failed}, nil
}

// An origin is an object and the way to it.
type origin struct {
	name   string // for errors
	bucket string
	url    *url.URL
	region string
	keys   *credentials.Credentials
	client *http.Client
}

// client follows no redirection, since the signature is for one address, and undoes no compression, since ranges count
// stored bytes.
var client = sync.OnceValue(func() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression, t.ResponseHeaderTimeout = true, 30*time.Second
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
})

var keys = sync.OnceValue(func() *credentials.Credentials {
	from := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	for _, name := range []string{"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		if os.Getenv(name) != "" {
			from = append(from, &credentials.IAM{})
			break
		}
	}
	return credentials.NewChainCredentials(from)
})

func newOrigin(path string) (*origin, error) {
	s := &origin{name: object.Public(path), client: client(), keys: keys()}
	bucket, key, _ := strings.Cut(path[len(object.Scheme):], "/")
	if strings.ContainsAny(path, "?#") || strings.ContainsAny(bucket, "@:") ||
		s3utils.CheckValidBucketName(bucket) != nil || s3utils.CheckValidObjectName(key) != nil ||
		strings.HasSuffix(key, "/") {
		return nil, s.bad("no name of an object", "s3://bucket/key, without a user or a query",
			"keys come from AWS_ACCESS_KEY_ID or ~/.aws/credentials, another store from AWS_ENDPOINT_URL")
	}
	if strings.ContainsAny(key, "*[") {
		return nil, s.bad("a pattern", "the key of an object",
			"name the objects in a list: data: [s3://bucket/a.csv, s3://bucket/b.csv]")
	}
	s.bucket, s.region = bucket, cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1")
	end := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	of := "/" + bucket + "/" + key
	if end == "" {
		domain := ".amazonaws.com"
		if strings.HasPrefix(s.region, "cn-") {
			domain += ".cn"
		}
		if end = "https://s3." + s.region + domain; !strings.Contains(bucket, ".") {
			end, of = "https://"+bucket+".s3."+s.region+domain, "/"+key
		}
	}
	u, err := url.Parse(end)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, &config.Error{File: s.name, Field: "AWS_ENDPOINT_URL", Found: "an address that does not read",
			Allowed: "https://host:port, without a user or a query"}
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + of
	u.RawPath = s3utils.EncodePath(u.Path)
	s.url = u
	return s, nil
}

func (s *origin) bad(found, allowed, hint string) error {
	return &config.Error{File: s.name, Found: found, Allowed: allowed, Hint: hint}
}

// An answer is some bytes of an object.
type answer struct {
	b    []byte
	size int64 // of the object
	tag  string
}

// errAgain wraps a failure after which another attempt may succeed.
type errAgain struct{ error }

// until ends all requests.
var until = context.Background()

// StopWith makes all requests end with ctx, and no more begin: for a command, before it opens a table. A server that
// does not answer would keep it for minutes.
func StopWith(ctx context.Context) { until = ctx }

// get reads up to n bytes from a position of the version tag; "": of whichever there is.
func (s *origin) get(from, n int64, tag string) (a answer, err error) {
	pause := firstPause
	for try := 1; ; try++ {
		a, err = s.try(from, n, tag)
		var again errAgain
		if !errors.As(err, &again) {
			return a, err
		}
		if until.Err() != nil {
			return a, until.Err()
		}
		if try == attempts {
			return a, fmt.Errorf("data: reading %s: %w; %d attempts failed", s.name, again.error, attempts)
		}
		select {
		case <-until.Done():
		case <-time.After(pause):
		}
		pause *= 2
	}
}

func (s *origin) try(from, n int64, tag string) (a answer, err error) {
	ctx, stop := context.WithTimeout(until, patience)
	defer stop()
	key, err := s.keys.GetWithContext(&credentials.CredContext{Client: s.client})
	if err != nil {
		return a, s.bad("credentials that cannot be read",
			"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile of ~/.aws", "")
	}
	address := *s.url // the signer writes into it, and requests are made at the same time
	plain := &http.Request{Method: http.MethodGet, URL: &address, Host: s.url.Host, Header: http.Header{}}
	plain.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, from+n-1))
	plain.Header.Set("X-Amz-Content-Sha256", unsigned)
	if tag != "" {
		plain.Header.Set("If-Match", tag)
	}
	resp, err := s.client.Do(signer.SignV4(*plain, key.AccessKeyID, key.SecretAccessKey, key.SessionToken,
		s.region).WithContext(ctx))
	if err != nil {
		var u *url.Error // shows the address
		if errors.As(err, &u) {
			err = u.Err
		}
		return a, errAgain{err}
	}
	defer resp.Body.Close()
	switch c := resp.StatusCode; {
	case c == http.StatusPartialContent:
		return s.part(resp, from, n, tag)
	case c == http.StatusRequestedRangeNotSatisfiable && tag == "" && resp.Header.Get("Content-Range") == "bytes */0":
		return answer{}, nil // an empty object has no range
	case c == http.StatusPreconditionFailed, c == http.StatusRequestedRangeNotSatisfiable && tag != "":
		return a, s.replaced()
	case c == http.StatusOK && tag == "" && resp.ContentLength == 0:
		return answer{}, nil
	case c == http.StatusOK:
		return a, s.bad("a store that does not read in ranges", "one that answers a Range header",
			"copy the object to a file")
	case c == http.StatusNotFound:
		if tag != "" {
			return a, s.replaced()
		}
		return a, s.bad("no such object", "an object of bucket "+s.bucket, "")
	case c == http.StatusUnauthorized, c == http.StatusForbidden:
		return a, s.bad("an object that these credentials may not read ("+code(resp)+")", "one that they may",
			"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE and ~/.aws/credentials, give others")
	case c >= 300 && c < 400, c == http.StatusBadRequest:
		hint := "AWS_REGION names the bucket's region, AWS_ENDPOINT_URL another store"
		if region := resp.Header.Get("X-Amz-Bucket-Region"); region != "" &&
			regexp.MustCompile(`^[a-z0-9-]{1,40}$`).MatchString(region) {
			hint = "write AWS_REGION=" + region
		}
		return a, s.bad("a request that the store refuses ("+code(resp)+")", "a bucket in region "+s.region, hint)
	case c == http.StatusTooManyRequests, c >= 500:
		return a, errAgain{fmt.Errorf("the store answers %s", code(resp))}
	}
	return a, fmt.Errorf("data: reading %s: the store answers %s", s.name, code(resp))
}

// replaced is the error of an object that is no longer the one that was opened.
func (s *origin) replaced() error {
	return s.bad("another object than when it was opened first: it was replaced or deleted",
		"the same object for the whole run", "run again, on an object that nobody writes to")
}

// part reads a range.
func (s *origin) part(resp *http.Response, from, n int64, tag string) (a answer, err error) {
	odd := s.bad("an answer that is not the range that was asked for", "a store that answers Range and If-Match headers",
		"copy the object to a file")
	r, ok := strings.CutPrefix(resp.Header.Get("Content-Range"), "bytes ")
	span, total, _ := strings.Cut(r, "/")
	first, last, _ := strings.Cut(span, "-")
	begin, err1 := strconv.ParseInt(first, 10, 64)
	end, err2 := strconv.ParseInt(last, 10, 64)
	a.size, err = strconv.ParseInt(total, 10, 64)
	if !ok || err1 != nil || err2 != nil || err != nil || begin != from || end < begin || end != min(from+n, a.size)-1 {
		return a, odd
	}
	if a.tag = resp.Header.Get("ETag"); a.tag == "" {
		return a, s.bad("a store that names no version of the object", "one that gives an ETag", "copy the object to a file")
	}
	if tag != "" && a.tag != tag {
		return a, s.replaced()
	}
	a.b = make([]byte, end-begin+1) // at most what was asked for
	if _, err := io.ReadFull(resp.Body, a.b); err != nil {
		return a, errAgain{errors.New("the connection ended too early")}
	}
	return a, nil
}

// code is the store's name of an error, and the status without one.
func code(resp *http.Response) string {
	var e struct{ Code string }
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
	if xml.Unmarshal(b, &e) != nil || !regexp.MustCompile(`^[A-Za-z]{1,64}$`).MatchString(e.Code) {
		return "status " + strconv.Itoa(resp.StatusCode)
	}
	return e.Code
}
