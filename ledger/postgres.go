package ledger

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/sottodp/sotto/internal/postgres"
	"github.com/sottodp/sotto/internal/redact"
)

func (d Disk) connectPostgres(where string, readOnly bool) (*store, error) {
	name := nameOf(where)
	parameters := map[string]string{}
	if readOnly {
		parameters["default_transaction_read_only"] = "on"
	}
	db, err := postgres.Open(where, parameters)
	if errors.Is(err, postgres.ErrNoDriver) {
		return nil, fmt.Errorf("ledger %s: %w", name, err)
	}
	if err != nil { // the cause may quote the password
		return nil, fmt.Errorf("ledger %s: the URL does not read as postgres://user:password@host:port/database", name)
	}
	db.SetMaxOpenConns(4)
	return &store{
		disk:  d,
		db:    db,
		where: name,

		readOnly: readOnly,

		tables: `SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema() AND table_name IN ('sotto_ledger', 'sotto_entries', 'sotto_progress')`,
		// Without a right a statement would fail and take the whole transaction with it.
		checkpoint: `SELECT coalesce((SELECT CASE
	WHEN has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE') THEN 3
	WHEN has_table_privilege(c.oid, 'SELECT') THEN 2 ELSE 0 END
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relname = 'sotto_checkpoint'),
	CASE WHEN has_schema_privilege(current_schema(), 'CREATE') THEN 1 ELSE 0 END)`,
		lock: `SELECT pg_advisory_xact_lock(7306367134228668493)`, // any number, the same for all
		sync: `SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'`,
	}, nil
}

// nameOf is the name of the ledger at a URL in files and errors: with the user, without passwords.
func nameOf(where string) string {
	u, err := url.Parse(where)
	if err != nil || strings.Contains(u.Path, "@") {
		return redact.Path(where)
	}
	q := u.Query()
	for _, key := range []string{"password", "sslpassword"} {
		if q.Has(key) {
			q.Set(key, "xxxxx")
			u.RawQuery = q.Encode()
		}
	}
	return u.Redacted()
}

// postgresWords explains an error of PostgreSQL to a person.
func postgresWords(err error) string {
	switch postgres.Code(err) {
	case "42501", "25006": // insufficient_privilege, read_only_sql_transaction
		return "this user may not write it: "
	case "53100": // disk_full
		return "no space is left; nothing was recorded: "
	}
	return ""
}
