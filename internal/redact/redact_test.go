package redact

import (
	"strings"
	"testing"
)

// urls are ways to write a password into a path; each has the word SECRET in it.
var urls = []string{
	"postgres://u:SECRET@h/d?sslmode=disable&table=t", "POSTGRES://u:SECRET@h/d?table=t", "PostgreSQL://u:SECRET@h:5432/d?table=t",
	"postgres:/u:SECRET@h/d?table=t", "postgres:u:SECRET@h/d?table=t", "postgres:///u:SECRET@h/d", "//u:SECRET@h/d", "u:SECRET@h/d?table=t", `postgres:\\u:SECRET@h\d`,
	" postgres://u:SECRET@h/d?table=t", "postgres://u:p@SECRET@h/d", "postgres://u:p/SECRET@h/d", "postgres://u:p@a/SECRET@h/d", "postgres://u:1/SECRET@h/d", "postgres://u:p?SECRET@h/d", "postgres://u:p#SECRET@h/d",
	"postgres://u:a://SECRET@h/d", "postgres://u:p%40SECRET@h/d", "postgres://u:p%40SECRET%40h/d", "postgres://u:SECRET@[::1]:5432/d", "postgres://u:SECRET@[::1/d", "postgres://u:SECRET@h1:5432,h2:5433/d", "postgres://u:SECRET@h:port/d",
	"postgres://u:SECRET", "postgres://user@u:SECRET@h/d", "postgres://u:p:SECRET@h/d", "postgres://:SECRET@h/d",
	"postgres://u@h/d?password=SECRET&table=t", "postgres://u@h/d?table=t&sslpassword=SECRET", "postgres://u@h/d?PASSWORD=SECRET", "postgres://u@h/d?pass%77ord=SECRET", "postgres:///d?user=u&password=SECRET",
	"jdbc:postgresql://h/d?user=u&password=SECRET", "jdbc:postgresql://u:SECRET@h/d", "people.db?table=t&password=SECRET", "sqlite:people.db?password=SECRET&table=t",
	"host=h password=SECRET dbname=d", "host=h password='SECRET' dbname=d", "host=h password = SECRET", `host=h password='a\' SECRET'`, `password="a SECRET"`,
	"s3://KEY:SECRET@b/k.csv", "S3://KEY:SECRET@b/k.csv", "s3://KEY:a/b+SECRET@b/k.csv", "s3a://KEY:SECRET@b/k", "s3:/KEY:SECRET@b/k", "https://u:SECRET@h/x.csv", "HTTPS://SECRET@h/x.csv", "ftp://u:SECRET@h/x", "mysql://u:SECRET@h/d",
	"https://b/k?X-Amz-Credential=SECRET&X-Amz-Signature=SECRET", "https://b/k?sv=1&sig=SECRET", "https://b/k?AWSAccessKeyId=SECRET", "https://b/k?access_token=SECRET",
	"a.csv + postgres://u:SECRET@h/d?table=t", "s3://b/a.csv + s3://KEY:SECRET@b/k.csv",
}

// spaced are those whose passwords have spaces, which only a whole path shows.
var spaced = []string{
	"postgres://u:a SECRET@h/d", "postgres://u: SECRET@h/d", "postgres://u:p@a SECRET@h/d", "postgres://u:a b:SECRET@h/d", "s3://KEY:a + SECRET@b/k.csv",
	"postgres://u@h/d?table=t&password=a SECRET", "postgres://u:a =x SECRET@h/d",
}

func TestPasswords(t *testing.T) {
	for _, u := range append(urls, spaced...) {
		if got := Path(u); strings.Contains(got, "SECRET") || got != Path(got) {
			t.Errorf("Path(%s) = %s", u, got)
		}
	}
	for _, u := range append(urls, "postgres://u:a SECRET@h/d", "postgres://u:p@a SECRET@h/d") {
		for _, s := range []string{"sotto: %: found no file to read", "unknown command \"%\" for \"sotto doctor\"", "--data=%", "parse \"%\": invalid port", "(%), as in postgres://user@host/database", "line 1\n%\nline 3", "cannot parse `%`: failed"} {
			s = strings.ReplaceAll(s, "%", u)
			if got := Text(s); strings.Contains(got, "SECRET") || got != Text(got) {
				t.Errorf("Text(%s) = %s", s, got)
			}
		}
	}
}

// What has no password stays as it is, above all the examples in our own messages.
func TestPlainTextStays(t *testing.T) {
	for _, s := range []string{
		"", "a.csv", "/data/it's @home/a.csv", `C:\data\a@b.csv`, "C:/a@b/c.csv", `C:\a@b.csv`, "a.csv + b.csv", "s3://bucket/a@b.csv", "s3://bucket/a=b.csv?versionId=3", "people.db?table=a@b", "sqlite:people.db?table=x",
		"postgres://h:5432/d?sslmode=disable&table=t", "postgres://[::1]:5432/d?table=t", "https://h1:1,h2:2/x", "nats://127.0.0.1:4222", "sotto@h", "mail a@b.org",
	} {
		if got := Path(s); got != s {
			t.Errorf("Path(%s) = %s", s, got)
		}
	}
	for _, s := range []string{
		"visits.yaml:5:1: rows is missing; write about how many rows the table has", "wss://hub:443: connection refused (tls://hub:4222)", `found a URL that starts with "s3://"; use postgres://, postgresql:// or the path of a file`,
		"found no name of a table; expected one, as in postgres://user@host/database?table=NAME or people.db?table=NAME", "https://host:port, without a user or a query", "found \"localhost:4222\"; write tls://HOST:PORT with a port of 1 to 65535", "does not read as postgres://user:password@host:port/database",
		"dial tcp 127.0.0.1:1: connect: connection refused; ask a@b.org", "--set model.l2=0.01", "PGPASSWORD or ~/.pgpass gives a password",
	} {
		if got := Text(s); got != s {
			t.Errorf("Text(%s) = %s", s, got)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, u := range urls {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, s string) {
		Text(s)
		Path(s)
	})
}
